"""Answers that stay open: bytes as they come, and the lines of a chat stream."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from aiohttp.web import StreamResponse

from byok.augment.chat_reply import chunk
from byok.chat import Json
from byok.record import Hop
from byok.server.http.exchange import HttpExchange
from byok.server.http.reply import COMMON, REQUEST_ID
from byok.wire.ndjson import encode_line

LINES = {
    **COMMON,
    "Content-Type": "application/x-ndjson; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
HEARTBEAT = encode_line(chunk())
FACTS = HEARTBEAT  # nothing was retrieved, no blob is unknown


class _Response(StreamResponse):
    """A stream whose head leaves in one packet with its first bytes."""

    _send_headers_immediately = False


def _response(
    exchange: HttpExchange, headers: Mapping[str, str], status: int = 200
) -> _Response:
    named = {**headers, REQUEST_ID: exchange.request_id}
    return _Response(status=status, headers=named)


async def static_stream(exchange: HttpExchange, *lines: Json) -> StreamResponse:
    """Answer with a stream whose lines are known."""
    response, data = _response(exchange, LINES), b"".join(map(encode_line, lines))
    if exchange.record.tap is not None:
        exchange.record.tap(Hop.TO_CLIENT, data)
    await response.prepare(exchange.request)
    await response.write_eof(data)
    return response


class OpenStream:
    """An open answer. A client that reads nothing for `patience` seconds is let go."""

    _first = b""

    def __init__(
        self,
        exchange: HttpExchange,
        headers: Mapping[str, str],
        *,
        patience: float,
        status: int = 200,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._request = exchange.request
        self._tap = exchange.record.tap
        self._response = _response(exchange, headers, status)
        self._patience = patience
        self._clock: Callable[[], float] = loop.time
        self._last = self._clock()
        self._stuck_since: float | None = None  # in a write that waits for the client
        self._lock = asyncio.Lock()
        self._watch = loop.call_later(patience, self._look)

    @property
    def response(self) -> StreamResponse:
        """What the handler returns."""
        return self._response

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.cancel()

    def begin_with(self, data: bytes) -> None:
        """Send something else first, as long as nothing was sent."""
        self._first = data

    async def write(self, data: bytes) -> None:
        """Send bytes, the first ones with the head; the client sees them at once."""
        if not self._response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        self._last = self._stuck_since = self._clock()
        await self._response.write(data)
        self._stuck_since = None

    async def finish(self, data: bytes = b"") -> None:
        """End the answer; its last bytes and the end leave in one packet."""
        if not self._response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        self._stuck_since = self._clock()
        await self._response.write_eof(data)

    async def break_off(self, data: bytes) -> None:
        """End the answer so that no client takes it for a whole one."""
        await self.write(data)
        if self._request.transport is not None:
            self._request.transport.close()  # without the mark of the end

    async def _prepare(self, data: bytes) -> bytes:
        """Prepare the head; return what goes out with it."""
        async with self._lock:
            if not self._response.prepared:
                await self._response.prepare(self._request)
                data = self._first + data
        return data

    def _look(self) -> None:
        """Let a client go that is stuck, else look again when it could be."""
        now = self._clock()
        since = now if self._stuck_since is None else self._stuck_since
        if now - since >= self._patience:
            self.hang_up()
            return
        loop = asyncio.get_running_loop()
        self._watch = loop.call_at(since + self._patience, self._look)

    def hang_up(self) -> None:
        """Break the connection: the write that waits fails, the upstream is freed."""
        if self._request.transport is not None:
            self._request.transport.abort()


class LineStream(OpenStream):
    """An open NDJSON response with heartbeats.

    Once it is kept alive, the head goes out with the first lines or after `head_after`
    seconds, preceded by the chunk with the retrieval facts; then, whenever `beat`
    seconds pass in silence, an empty delta, because clients give up after 60 s between
    bytes. Before, an error can still become an HTTP status.
    """

    _first = FACTS
    _heartbeat = HEARTBEAT

    def __init__(
        self,
        exchange: HttpExchange,
        *,
        beat: float = 20.0,
        head_after: float = 5.0,
        patience: float = 30.0,
    ) -> None:
        super().__init__(exchange, LINES, patience=patience)
        self._beat = beat
        self._head_after = head_after
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None  # of an answer that takes long

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await self._task
        await super().__aexit__(kind, error, trace)

    def beat_with(self, data: bytes) -> None:
        """Send another heartbeat, or none."""
        self._heartbeat = data

    def keep_alive(self) -> None:
        """From now on, let the client hear something in time."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._head_after, self._take_care)

    def _take_care(self) -> None:
        self._task = asyncio.ensure_future(self._keep_alive())

    async def _keep_alive(self) -> None:
        while True:
            silence = self._clock() - self._last
            stuck = self._stuck_since is not None
            if not self._response.prepared:
                await self.write(b"")
            elif not self._heartbeat:
                return
            elif silence >= self._beat and not stuck:
                await self.write(self._heartbeat)
            else:
                await asyncio.sleep(self._beat if stuck else self._beat - silence)
