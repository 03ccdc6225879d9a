"""The record of a request: facts about it and its answer; never any content.

One record is made for each request (`server/app.py`) and filled on the way: the
endpoint and the client where the request arrives, the model where one is chosen, tokens
and repairs where the answer is written. Observers, which are the features and the
access log, read it: each is called at the start and at the end of every request. One
that needs the bytes, too, returns a tap at the start; without any tap, a network read
costs only a check for None.

Within `server/` the record is passed as an argument. `upstream/` finds it in a
ContextVar: the steps between the server and an HTTP call, such as the context window or
the fill-in-the-middle modes, do not need it, and would each have to pass it on. Tasks
and threads inherit the variable, so a summary that an answer needs counts as attempts
of the same request.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from byok.core.errors import ByokError
from byok.core.events import StreamEvent, Usage
from byok.core.routing import ListedModel

_log = logging.getLogger(__name__)
Listener: TypeAlias = Callable[[Sequence[StreamEvent]], None]
Read: TypeAlias = Callable[[], Awaitable[bytes]]  # gives b"" at the end
# Endpoints that byok's own commands, its page and Prometheus request again and again.
_OWN_PREFIXES = ("/health", "/byok/", "/metrics", "/ui/")
CLIENT_GONE = 499  # the status of a request whose client closed the connection


class Hop(StrEnum):
    """The four hops of the bytes of a request and its answer."""

    FROM_CLIENT = "from_client"
    TO_UPSTREAM = "to_upstream"
    FROM_UPSTREAM = "from_upstream"
    TO_CLIENT = "to_client"


class Head(NamedTuple):
    """The head of a request or an answer: its first line and all headers.

    Headers hold secrets.
    """

    line: str
    headers: tuple[tuple[str, str], ...] = ()


class Tap(Protocol):
    """Receives the bytes of one request; must not block or raise."""

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        """Handle a body, the bytes of one read or write, or a head.

        A head comes before the body, but that of an answer to a client at the end.
        """
        ...


class RequestOutcome(StrEnum):
    """How a request ended."""

    OPEN = "open"
    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RequestRecord(Struct, eq=False):
    """The facts of one request and its answer, for observers; never any content.

    Attributes:
        endpoint: the path of a known endpoint, never the path that was sent.
        client: a family and a version, such as `vscode/0.600.1`.
        trusted: the request had the token.
        purpose, model_asked: those of the request, "" if it needs no model.
        upstream, model: those that were asked last; the official service is the
            upstream `official` without a model.
        attempts: the number of requests to upstreams.
        retried: the codes of failures after which one was asked again, each once.
        first_byte: seconds from the start to the upstream's first event, or None.
        usage: the tokens of the answer.
        own_usage: the tokens of byok's own questions, by upstream and model.
        uncounted: the upstreams and models of own questions that reported no tokens.
        repairs: the number of tool calls that were changed.
        dropped_calls: the number of calls that were cut or no JSON object, and so were
            not passed on.
        tool_calls: the names of the tools that the answer calls, in their order.
        notices: the number of sentences that byok added to the answer.
        loop: the loop that a turn is in, such as `warned-failing-3`, or
            `ended-failing-6` if byok ended it.
        prompt: the prompt that byok gave the model and the version of all prompts, such
            as `agent.small@1a2b3c4d`.
        prompt_change: where the prompt differs from the last one of its conversation,
            so that the upstream's cache misses from there; "" if it continues that one.
        status: that of the HTTP answer, 0 while it is open.
        error, error_class, message: the code, class and text of a failure, which may
            also be in an answer with status 200.
        chat_upstreams: those of the chats of the same window, None if it had no chat.
        folders: those that this window has open, as far as known.
        listener: receives the events of the answer; it must not block or raise.
    """

    request_id: str = ""
    method: str = ""
    endpoint: str = "(none)"
    client: str = ""
    trusted: bool = False
    conversation: str = ""
    purpose: str = ""
    model_asked: str = ""
    upstream: str = ""
    model: str = ""
    attempts: int = 0
    retried: list[str] = []
    first_byte: float | None = None
    usage: Usage | None = None
    own_usage: dict[tuple[str, str], Usage] | None = None
    uncounted: list[tuple[str, str]] = []
    repairs: int = 0
    dropped_calls: int = 0
    tool_calls: list[str] = []
    notices: int = 0
    loop: str = ""
    prompt: str = ""
    prompt_change: str = ""
    status: int = 0
    error: str = ""
    error_class: str = ""
    message: str = ""
    chat_upstreams: frozenset[str] | None = None
    folders: tuple[str, ...] = ()
    listener: Listener | None = None
    tap: Tap | None = None
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0
    ended: float | None = None

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def model_id(self) -> str:
        """The model that was asked, as `byok:<upstream>:<model>`; "" without one."""
        return ListedModel(self.upstream, self.model).id if self.model else ""

    @property
    def is_of_client(self) -> bool:
        """Whether it has the token, and is not for byok's own commands or metrics."""
        return self.trusted and not self.endpoint.startswith(_OWN_PREFIXES)

    @property
    def total_usage(self) -> Usage | None:
        """The tokens of the answer and of byok's own questions, as far as known."""
        total = self.usage
        for usage in (self.own_usage or {}).values():
            total = usage.plus(total)
        return total

    @property
    def seconds(self) -> float:
        """How long the request took, or has taken so far."""
        return (self.clock() if self.ended is None else self.ended) - self.started

    @property
    def outcome(self) -> RequestOutcome:
        """How the request ended."""
        if self.ended is None:
            return RequestOutcome.OPEN
        if self.status == CLIENT_GONE:
            return RequestOutcome.CANCELLED
        return RequestOutcome.FAILED if self.error else RequestOutcome.OK

    def note_attempt(self, content: bytes) -> None:
        """Count a request to an upstream."""
        self.attempts += 1
        if self.tap is not None:
            _attempt.set(self.attempts)
            self.tap(Hop.TO_UPSTREAM, content)

    def note_retry(self, error: ByokError) -> None:
        """Record a failure after which an upstream is asked again."""
        if error.code not in self.retried:
            self.retried.append(error.code)

    def tap_answer(self, content: bytes) -> None:
        """Pass to the tap an upstream's answer that was read in one piece."""
        if self.tap is not None and content:
            self.tap(Hop.FROM_UPSTREAM, content)

    def tap_reads(self, read: Read) -> Read:
        """Return `read`, or a function that also passes the bytes to the tap."""
        tap = self.tap
        if tap is None:
            return read

        async def read_and_tap() -> bytes:
            if data := await read():
                tap(Hop.FROM_UPSTREAM, data)
            return data

        return read_and_tap

    def note_first_byte(self) -> None:
        """Record the time of the upstream's first event; later calls do nothing."""
        if self.first_byte is None:
            self.first_byte = self.clock() - self.started

    def note_own_usage(self, upstream: str, model: str, usage: Usage) -> None:
        """Add the tokens of a question of byok's own."""
        self.own_usage = self.own_usage or {}
        key = upstream, model
        self.own_usage[key] = usage.plus(self.own_usage.get(key))

    def note_error(self, error: ByokError) -> None:
        """Record a failure that is reported to the client."""
        self.error, self.error_class = error.code, type(error).__name__
        self.message = error.message

    def finish(self, status: int) -> None:
        """Record the end."""
        self.status, self.ended = status, self.clock()


_current: ContextVar[RequestRecord] = ContextVar("record")
_attempt: ContextVar[int] = ContextVar("attempt", default=0)


def current_attempt() -> int:
    """Return the number of the request to an upstream in this task, 0 for none.

    It is set for taps only: byok's own questions may run concurrently.
    """
    return _attempt.get()


def begin_record(record: RequestRecord) -> RequestRecord:
    """Make this the record of the current task from now on."""
    _current.set(record)
    return record


@contextmanager
def no_record() -> Iterator[None]:
    """Keep work in the block out of the request's record.

    It is for work that goes on after the end of the request that started it.
    """
    reset_token = _current.set(RequestRecord())
    try:
        yield
    finally:
        _current.reset(reset_token)


def current_record() -> RequestRecord:
    """Return the record of the current request, or a new one that nobody reads."""
    return _current.get(None) or RequestRecord()


class Observer(Protocol):
    """Reads the records of requests; called on the event loop, so it must not block."""

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Handle the start of a request; only its id, method and client are known.

        The result, if any, receives the bytes of this request.
        """

    def request_finished(self, record: RequestRecord, /) -> None:
        """Handle the end of a request; its record does not change any more."""


class Observers:
    """Calls several observers; if one fails, that is logged and changes no answer."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)

    def start(self, record: RequestRecord) -> None:
        """Call all observers at the start, and attach their taps to the record."""
        taps: list[Tap] = []
        for observer in self._observers:
            try:
                tap = observer.request_started(record)
            except Exception:
                _log.exception("an observer of requests failed")
            else:
                taps += [] if tap is None else [tap]
        if taps:
            record.tap = _Taps(taps)

    def finish(self, record: RequestRecord) -> None:
        """Remove tap and listener, and call all observers at the end."""
        record.tap = record.listener = None
        for observer in self._observers:
            try:
                observer.request_finished(record)
            except Exception:
                _log.exception("an observer of requests failed")


class _Taps:
    """Several taps as one; a tap that fails is removed."""

    def __init__(self, taps: list[Tap]) -> None:
        self._taps = taps

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        for tap in [*self._taps]:
            try:
                tap(hop, piece)
            except Exception:
                self._taps.remove(tap)
                _log.exception("a tap of a request failed")
