"""Calls to one server, below its client: key, time limits, circuit breaker, reads."""

import asyncio
import math
import time
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import groupby
from typing import Protocol, Self

import aiohttp
import httpx
from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.errors import (
    ConnectFailed,
    NotReady,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.events import StreamEvent, TextDelta, ToolCallDelta
from byok.core.record import Head, Hop, current_record
from byok.core.stage import Stage
from byok.core.urls import is_loopback
from byok.core.wire.inflate import Inflate
from byok.upstream.failures import is_refused, translate_errors
from byok.upstream.transport import Route, Transports, body_of

# Circuit breaker: an upstream that cannot be connected to is not asked for a while.
#
# Closed, all requests pass. After five failed connections within thirty seconds it
# opens: requests are refused at once for `pause` seconds. Then it is half open: one
# request, the probe, passes, and its outcome closes it or opens it again. Others wait
# for that a moment.


FAILURES = 5
WINDOW_SECONDS = 30.0
_SHORT = 2.0  # seconds that a request waits for the probe instead of being refused


class CircuitBreaker:
    """Pauses an upstream for `pause` seconds after five failed connections in 30 s."""

    def __init__(
        self,
        pause: float = 30.0,
        *,
        upstream: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pause = pause
        self._upstream = upstream
        self._clock = clock
        self._sleep = sleep
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._cause = self._hint = ""  # of the last failure, for users
        self._until: float | None = None  # when it is half open; None where closed
        self._is_probing = False  # the probe has no outcome yet
        self._probed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Whether all requests pass."""
        return self._until is None

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Send a request inside; it calls `record_success` or `record_failure`.

        A probe that ends without either, because its client left, decides nothing: the
        next request is the probe.

        Raises:
            NotReady: the breaker is open.
        """
        while 0 < (left := self.seconds_left()) < _SHORT:
            await self._sleep(left)
        with suppress(TimeoutError):
            async with asyncio.timeout(_SHORT):
                while self._is_probing:
                    await self._probed.wait()
        self.check()
        mine = self._is_probing = self._until is not None
        self._probed.clear()
        try:
            yield
        finally:
            if mine and self._is_probing:
                self._until = self._clock()
                self._end_probe()

    def check(self) -> None:
        """Check that a request may be sent; where half open, it becomes the probe.

        Raises:
            NotReady: the breaker is open.
        """
        if self._until is None:
            return
        if (left := self.seconds_left()) > 0:
            raise NotReady(
                f"{self._cause} After several failures in a row the next attempt is "
                f"made in {math.ceil(left)} s.",
                code="upstream_down",
                hint=self._hint,
                upstream=self._upstream,
            )
        self._until = self._clock() + self._pause  # open for all but the probe

    def seconds_left(self) -> float:
        """Return for how long it stays open; at most 0 where a request may be sent."""
        return 0.0 if self._until is None else self._until - self._clock()

    def record_success(self) -> None:
        """Close: the upstream answered."""
        self._failures.clear()
        self._until = None
        self._end_probe()

    def record_failure(self, cause: UpstreamError) -> None:
        """Count a failed connection; open where there were too many."""
        now = self._clock()
        self._end_probe()
        self._cause, self._hint = cause.message, cause.hint
        self._failures.append(now)
        full = len(self._failures) == FAILURES
        if self._until is not None or (
            full and now - self._failures[0] <= WINDOW_SECONDS
        ):
            self._until = now + self._pause

    def _end_probe(self) -> None:
        self._is_probing = False
        self._probed.set()


# Timeouts of an upstream: connecting, the first byte, idle time, the whole answer.
#
# A local model answers only after it has read the whole prompt, so local servers get
# more time; many send the head of their answer long before. So does a model that
# reasons: many APIs send nothing while it thinks. Comments of a stream (": keep
# waiting") keep a connection from being idle, but not for ever.


NOT_BEGUN = "it did not begin to answer in time."
_SILENT = "it fell silent in the middle of its answer."
_ALIVE = "it sent only signs of life for too long."
_ENDLESS = "its answer took too long."


class Timeouts(Struct, frozen=True):
    """The timeouts of a request to an upstream, in seconds.

    Attributes:
        connect: to establish a connection.
        first_byte: to the head of an answer, and from there to its first event.
        idle: between two reads after the first event.
        comments_only: between two events, while only comments come.
        total: for the whole answer.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 90.0
    comments_only: float = 600.0
    total: float = 1800.0

    def with_idle(self, seconds: float) -> Self:
        """Return these with the timeout that the user set, in seconds."""
        return replace(
            self,
            first_byte=seconds,
            idle=seconds,
            comments_only=max(seconds, self.comments_only),
            total=max(seconds, self.total),
        )


REMOTE = Timeouts()
REASONING = Timeouts(first_byte=600.0, idle=300.0)
LOCAL = Timeouts(first_byte=600.0, idle=300.0, comments_only=1800.0, total=7200.0)


class Watch:
    """Aborts an answer that exceeds its timeouts; `failure` says which.

    It has one timer, so that a read only notes the time.
    """

    def __init__(self, timeouts: Timeouts, abort: Callable[[], None]) -> None:
        self._timeouts = timeouts
        self._abort = abort
        self._loop = asyncio.get_running_loop()
        self._began = self._last_read = self._last_event = self._loop.time()
        self._has_begun = False  # the first event has come
        self._timer: asyncio.TimerHandle | None = None
        self.failure: UpstreamTimeout | None = None

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def note_bytes(self, *, has_event: bool) -> None:
        """Note a read, and whether it completed an event."""
        self._last_read = self._loop.time()
        if has_event:
            self._last_event = self._last_read
            self._has_begun = True

    def _check(self) -> None:
        timeouts, now = self._timeouts, self._loop.time()
        reason, idle = NOT_BEGUN, timeouts.first_byte
        if self._has_begun:
            reason, idle = _SILENT, timeouts.idle
        ends = {
            reason: self._last_read + idle,
            _ALIVE: self._last_event + timeouts.comments_only,
            _ENDLESS: self._began + timeouts.total,
        }
        reason = min(ends, key=ends.__getitem__)
        if ends[reason] > now:  # once an answer begins, `idle` counts: look in time
            look = min(ends[reason], now + timeouts.idle)
            self._timer = self._loop.call_at(look, self._check)
            return
        self.failure = too_slow(reason)
        self._abort()


def too_slow(reason: str) -> UpstreamTimeout:
    """Return the error for a timeout."""
    return UpstreamTimeout(reason, hint="A higher timeout for this upstream may help.")


# Reading HTTP response bodies: as events, within a limit, or forwarded.


_DRAIN_SECONDS = 0.02
MAX_WHOLE = 64 * 2**20  # of an answer that is passed on in one piece


def feed_read(
    stage: Stage[bytes, StreamEvent], data: bytes
) -> tuple[list[StreamEvent], UpstreamError | None]:
    """Feed one read (b"" at the end); return its events, and the error after them.

    The text of one read is joined to one delta, as are the arguments of a call.
    """
    batch: list[StreamEvent] = []
    failure: UpstreamError | None = None
    try:
        batch += stage.feed(data) if data else stage.flush()
    except UpstreamError as error:  # what came before it is in the batch
        failure = error
    return (batch if len(batch) < 2 else list(_join_deltas(batch))), failure


def _join_deltas(batch: list[StreamEvent]) -> Iterator[StreamEvent]:
    for kind, events in groupby(batch, type):
        if kind is TextDelta:
            yield TextDelta("".join(e.text for e in events if isinstance(e, TextDelta)))
        elif kind is ToolCallDelta:
            yield from _join_arguments(
                e for e in events if isinstance(e, ToolCallDelta)
            )
        else:
            yield from events


def _join_arguments(deltas: Iterable[ToolCallDelta]) -> Iterator[ToolCallDelta]:
    for index, run in groupby(deltas, _continued_index):
        if index is None:
            yield from run
        else:
            yield ToolCallDelta(index, arguments="".join(d.arguments for d in run))


def _continued_index(delta: ToolCallDelta) -> int | None:
    """Return the index of a call of which a delta has more arguments, and no more."""
    has_more = delta.id or delta.name or delta.provider_data or delta.is_printed
    return None if has_more else delta.index


def at_end(lost: UpstreamError | None, failure: UpstreamError) -> UpstreamError:
    """Return the error of an incomplete answer; `lost` is that of its connection."""
    if lost:
        return lost
    if isinstance(failure, UpstreamNotJson):
        return UpstreamGarbled(
            "its answer broke off before the end.", code="upstream_cut", retryable=True
        )
    return failure


async def drain(read: Callable[[], Awaitable[bytes]]) -> None:
    """Read a finished answer to its end, so that the connection can be reused."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while await read():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return  # it stays open, or broke: the answer is whole all the same


async def hang_up(response: httpx.Response) -> None:
    """Close a response; its connection is reused if it was read to the end."""
    try:
        await response.aclose()
    except httpx.HTTPError:
        return  # the connection broke; that is as good as closed


async def read_limited(
    response: httpx.Response, limit: int, *, cut: bool = False
) -> bytes:
    """Read a whole body of at most `limit` bytes; `cut` truncates a larger one.

    Raises:
        UpstreamGarbled: it is larger, without `cut`.
    """
    raw = bytearray()
    inflate = Inflate(response.headers.get("content-encoding", ""))
    async for data in response.aiter_raw():
        for plain in inflate.feed(data):
            raw += plain
        if len(raw) > limit:
            if cut:
                break
            raise UpstreamGarbled("its answer is too large.")
    return bytes(raw[:limit])


def describing_headers(response: httpx.Response) -> dict[str, str]:
    """Return the headers of a response that a client needs to read its body."""
    names = ("content-type", "content-encoding")
    return {n: response.headers[n] for n in names if n in response.headers}


async def pass_on(
    response: httpx.Response, name: str, url: str, timeouts: Timeouts
) -> AsyncGenerator[bytes, None]:
    """Yield the reads of a response as they come; `name` and `url` are for errors.

    Raises:
        UpstreamUnreachable: the connection broke, or a timeout was exceeded.
    """
    body = body_of(response)
    read = current_record().tap_reads(body.read)
    with Watch(timeouts, body.abort) as watch:
        try:
            with translate_errors(url):
                while data := await read():
                    watch.note_bytes(has_event=True)
                    yield data
        except UpstreamUnreachable as error:
            failure = watch.failure or error
            failure.upstream = name
            raise failure from error


async def read_to_end(reads: AsyncIterator[bytes], limit: int = MAX_WHOLE) -> bytes:
    """Return all the reads of a response in one piece.

    Raises:
        UpstreamGarbled: they are larger than `limit` bytes.
    """
    pieces: list[bytes] = []
    size = 0
    async for data in reads:
        size += len(data)
        if size > limit:
            raise UpstreamGarbled("its answer is too large.")
        pieces.append(data)
    return b"".join(pieces)


class Callee(Struct, frozen=True):
    """One HTTP server: its name for users, where it is and how it is reached."""

    name: str
    base_url: str
    timeouts: Timeouts = REMOTE
    breaker_pause: float = 30.0
    route: Route = field(default_factory=Route)


class KeySource(Protocol):
    """The source of an upstream's API key."""

    async def get(self) -> str:
        """Return the key, "" if none is needed.

        Raises:
            KeyMissing: one is needed and none was found.
        """
        ...

    def forget(self) -> None:
        """Look the key up again next time: the upstream refused it."""
        ...


class RequestKey(KeySource, Protocol):
    """The key of one request."""

    def replace(self, seconds: float) -> bool:
        """Let the key rest and use another one; False if no other is ready."""
        ...


class UpstreamKeys(KeySource, Protocol):
    """The keys of an upstream; one of them is used for requests without a choice."""

    def begin(self, conversation: str = "") -> RequestKey:
        """Return the key for a request; "" is no conversation."""
        ...


class Caller:
    """Calls one server. Redirects are not followed: they could leak the key."""

    def __init__(
        self,
        callee: Callee,
        transports: Transports,
        key: KeySource,
        *,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._callee = callee
        self._transports = transports
        self._key = key
        self._breaker = breaker or CircuitBreaker(
            callee.breaker_pause, upstream=callee.name
        )

    @property
    def rest_seconds(self) -> float:
        """For how long the server is not asked, because it could not be reached."""
        return max(0.0, self._breaker.seconds_left())

    async def call(
        self,
        url: httpx.URL,
        content: bytes | None,
        head: Callable[[str], httpx.Headers],
        source: KeySource | None = None,
        timeouts: Timeouts | None = None,
    ) -> httpx.Response:
        """Send a request and return the response, with any status. Close it when done.

        With content it is a POST, else a GET; `head` returns the headers for a key,
        which comes from `source` where the request has one of its own, as `timeouts`.
        After a 401 the key is looked up again, and the request repeated if it changed.

        Raises:
            UpstreamUnreachable: no connection, or no response head in time.
            NotReady: the circuit breaker is open.
        """
        source = source or self._key
        timeouts = timeouts or self._callee.timeouts
        key = await source.get()
        response = await self._send(url, content, head(key), timeouts)
        if response.status_code != 401:
            return response
        source.forget()
        try:
            other = await source.get()
        except BaseException:
            await hang_up(response)
            raise
        if other == key:
            return response
        await hang_up(response)
        return await self._send(url, content, head(other), timeouts)

    async def _send(
        self,
        url: httpx.URL,
        content: bytes | None,
        headers: httpx.Headers,
        timeouts: Timeouts,
    ) -> httpx.Response:
        callee = self._callee
        # It is closed nearly always, and every request passes then.
        gate = nullcontext() if self._breaker.is_closed else self._breaker.attempt()
        async with gate:
            try:
                with translate_errors(url):
                    request = httpx.Request(
                        "GET" if content is None else "POST",
                        url,
                        headers=headers,
                        # A stream spares httpx the headers that aiohttp adds anyway.
                        stream=httpx.ByteStream(content or b""),
                        extensions={"timeout": {"connect": timeouts.connect}},
                    )
                    request.read()
                    if tap := current_record().head_tap:
                        line = f"{request.method} {url}"
                        tap.take_head(Hop.TO_UPSTREAM, _head(line, headers))
                    transport = self._transports.by(callee.route)
                    async with asyncio.timeout(timeouts.first_byte):
                        response = await transport.handle_async_request(request)
            except TimeoutError as error:
                raise too_slow(NOT_BEGUN) from error
            except ConnectFailed as error:
                # A local server that is not running may be started any moment.
                if not (is_refused(error) and is_loopback(callee.base_url)):
                    self._breaker.record_failure(error)
                raise
            self._breaker.record_success()
        if tap := current_record().head_tap:
            line = str(response.status_code)
            tap.take_head(Hop.FROM_UPSTREAM, _head(line, response.headers))
        return response


def _head(line: str, headers: httpx.Headers) -> Head:
    return Head(line, tuple(headers.multi_items()))


def redirect_error(status: int) -> UpstreamRefused:
    """Return the error for a redirect."""
    return UpstreamRefused(
        f"it answered {status}, a redirect, which is never followed.",
        upstream_status=status,
        kind=RefusalKind.REDIRECT,
        hint="Put the final address into base_url.",
    )
