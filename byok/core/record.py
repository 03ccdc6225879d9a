"""What byok notes of a request while it answers it; never any content.

One record is made for each request (`server/app.py`) and filled on the way: the
endpoint and the client where the request arrives, the model where one is chosen, tokens
and repairs where the answer is written. Observers (`byok/core/observer.py`) read it.

Within `server/` the record is passed as an argument. `upstream/` finds it in a
ContextVar: between the server and an HTTP call stand the context window, the repeated
tool call, the fill-in-the-middle modes and summaries, which have nothing to note; each
of them would have to take the record and pass it on. A summary that an answer needs
counts as attempts of the same request, as the variable is inherited by tasks and
threads.
"""

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

Listener: TypeAlias = Callable[[Sequence[StreamEvent]], None]
Read: TypeAlias = Callable[[], Awaitable[bytes]]  # gives b"" at the end
# What byok's own commands and Prometheus ask, again and again.
_OWN = ("/health", "/byok/", "/metrics", "/ui/")
CLIENT_GONE = 499  # the status of a request whose client closed the connection


class Hop(StrEnum):
    """Where bytes pass: the four hops of a request and its answer."""

    FROM_CLIENT = "from_client"
    TO_UPSTREAM = "to_upstream"
    FROM_UPSTREAM = "from_upstream"
    TO_CLIENT = "to_client"


class Head(NamedTuple):
    """The head of a request or an answer: its first line, and all headers.

    They hold secrets.
    """

    line: str
    headers: tuple[tuple[str, str], ...] = ()


class Tap(Protocol):
    """Receives what passes of one request; must not block or raise."""

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        """Take a body, or what one read or write carried.

        A head comes before the body or, to clients, at the end.
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

    `endpoint` is the path of a known endpoint, never the path that was sent. `client`
    is a family and a version, such as `vscode/0.600.1`. `purpose` and `model_asked` are
    what the client asked for, "" where it asked for no model. `upstream` and `model`
    are what was asked last; the official service is the upstream `official` without a
    model. `usage` are the tokens of the answer, `own_usage` those of byok's own
    questions by upstream and model, and `uncounted` those asked that told none.
    `first_byte` is in seconds from the start to the upstream's first event, None
    without one. `attempts` counts requests to upstreams, `retried` has the codes of
    failures after which one was asked again, each once. `repairs` counts changed tool
    calls, `dropped_calls` those that were cut or no JSON object, and so not passed on;
    `tool_calls` are the names of the tools that the answer calls, in their order;
    `notices` sentences that byok added to the answer. `loop` is the loop that a turn is
    in, as `warned-failing-3`, or `ended-failing-6` if byok ended it. `prompt` is the
    prompt that byok told the model and the version of all prompts, as
    `agent.small@1a2b3c4d`.
    `prompt_change` tells where the prompt differs from the last one of its
    conversation, so that the upstream's cache misses from there; "" if it continues
    that one. `status` is that of the HTTP answer, 0 while it is open; `error` and
    `error_class` are the code and the class of a failure, which may also be told in an
    answer with status 200, and `message` what was said of it. `chat_upstreams` are
    those that chats of the same window go to, None if it had none; `folders` those that
    this window has open, as far as it told. A `listener` is given the events of the
    answer; it must not block or raise.
    """

    request_id: str = ""
    method: str = ""
    endpoint: str = "(none)"
    client: str = ""
    trusted: bool = False  # the token was shown
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
        """Whether it came with the token, and not for commands or metrics of byok's."""
        return self.trusted and not self.endpoint.startswith(_OWN)

    @property
    def total_usage(self) -> Usage | None:
        """The tokens of the answer and of byok's own questions, as far as known."""
        total = self.usage
        for own in (self.own_usage or {}).values():
            total = own.plus(total)
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
        """Note a failure after which an upstream is asked again."""
        if error.code not in self.retried:
            self.retried.append(error.code)

    def tap_answer(self, content: bytes) -> None:
        """Show to the tap what an upstream sent and was read in one piece."""
        if self.tap is not None and content:
            self.tap(Hop.FROM_UPSTREAM, content)

    def tap_reads(self, read: Read) -> Read:
        """Return `read`, or what also shows to the tap what an upstream sent."""
        tap = self.tap
        if tap is None:
            return read

        async def read_and_tap() -> bytes:
            if data := await read():
                tap(Hop.FROM_UPSTREAM, data)
            return data

        return read_and_tap

    def note_first_byte(self) -> None:
        """Note that the upstream answered; only the first time counts."""
        if self.first_byte is None:
            self.first_byte = self.clock() - self.started

    def note_own_usage(self, upstream: str, model: str, usage: Usage) -> None:
        """Add the tokens of a question of byok's own."""
        self.own_usage = self.own_usage or {}
        asked = upstream, model
        self.own_usage[asked] = usage.plus(self.own_usage.get(asked))

    def note_error(self, error: ByokError) -> None:
        """Note a failure that the client is told."""
        self.error, self.error_class = error.code, type(error).__name__
        self.message = error.message

    def finish(self, status: int) -> None:
        """Note the end."""
        self.status, self.ended = status, self.clock()


_current: ContextVar[RequestRecord] = ContextVar("record")
_attempt: ContextVar[int] = ContextVar("attempt", default=0)


def current_attempt() -> int:
    """Return which request to an upstream is under way in this task, 0 for none.

    It is kept for taps only: byok's own questions may run beside each other.
    """
    return _attempt.get()


def begin_record(record: RequestRecord) -> RequestRecord:
    """Make this the record of whatever the current task does from now on."""
    _current.set(record)
    return record


@contextmanager
def no_record() -> Iterator[None]:
    """Note what happens inside in no request's record.

    For work that goes on when the request is over during which it began.
    """
    before = _current.set(RequestRecord())
    try:
        yield
    finally:
        _current.reset(before)


def current_record() -> RequestRecord:
    """Return the record of the request, or one that nobody reads."""
    return _current.get(None) or RequestRecord()
