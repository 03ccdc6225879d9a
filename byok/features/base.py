"""What a feature is: settings of its own, and hooks around every request.

A feature overrides the hooks that it needs; the others cost nothing. Hooks that decide
(`configure`, `admit`) let errors through: a cap that cannot be checked refuses. Hooks
that watch (`request_started`, `request_finished`) change no answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from byok.core.chat import ChatRequest, Json
from byok.core.errors import ByokError
from byok.core.platform.paths import Paths
from byok.core.record import RequestRecord, Tap
from byok.core.redact import Redactor
from byok.core.threads import Runner, inline
from byok.features.cost import PriceOf
from byok.features.status import StatusRow
from byok.settings.settings import Settings

if TYPE_CHECKING:
    from byok.core.code_query import IndexStatus, RetrievalRequest
    from byok.core.daemon.token import TokenCheck
    from byok.settings.keys.ladder import AnyKey
    from byok.upstream.own_tools import OwnTool


# What the page reads as it changes: readers, and why one gets no more.


class FeedEnd(StrEnum):
    """Why a page gets no more changes."""

    REPLACED = "replaced"  # too many others came
    SESSION = "session"
    STOPPING = "stopping"


class FeedReader:
    """Waits for changes. `seen` is the last version that was taken, 0 for none."""

    def __init__(self) -> None:
        self.seen = 0
        self.end: FeedEnd | None = None
        self.on_end: Callable[[], None] | None = None
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Signal that there is something new."""
        self._woken.set()

    def finish(self, why: FeedEnd) -> None:
        """End the reader; the first reason counts."""
        if self.end is None:
            self.end = why
            self.wake()
            if self.on_end is not None:
                self.on_end()

    async def wait(self, seconds: float) -> bool:
        """Wait for something new or the end; tell whether it came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Feed(Protocol):
    """Something of which the page is sent what changes."""

    def open_reader(self) -> AbstractContextManager[FeedReader]:
        """Read until the block ends."""

    def take(self, reader: FeedReader, /) -> Json:
        """Return what a reader has not seen."""


class Load(Protocol):
    """How much the daemon has to do: answers in progress, and requests that wait."""

    @property
    def open(self) -> int:
        """Answers in progress."""

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""


class Site(Struct, frozen=True):
    """What a feature may use for as long as the daemon runs.

    `clock` gives seconds since 1970.
    """

    paths: Paths
    redactor: Redactor
    clock: Callable[[], float]
    load: Load


class Number(NamedTuple):
    """A number for the metrics: its name, `counter` or `gauge`, what it means."""

    name: str
    kind: str
    meaning: str
    value: float


class OwnPage(Struct, frozen=True):
    """A page at a path of its own, for whoever shows the token.

    `token_hint` tells where the token is had. `write` gets the numbers of all features.
    """

    path: str
    content_type: str
    token: "TokenCheck"
    token_hint: str
    write: Callable[[Sequence[Number]], Awaitable[bytes]]


class Supplies(Protocol):
    """What one state of the settings offers to features; `wiring.Services` has it."""

    @property
    def settings(self) -> Settings:
        """All settings; a feature reads its section by `settings.section(TYPE)`."""

    @property
    def price_of(self) -> PriceOf:
        """What tells the price of a model, None if it is not known."""

    @property
    def ask_index(self) -> "Callable[[], Awaitable[IndexStatus]]":
        """What asks the index of code how it stands."""

    @property
    def presets(self) -> Mapping[str, str]:
        """The vendors' names of the upstreams, by the names of these."""

    @property
    def keys(self) -> "Mapping[str, AnyKey]":
        """The keys of upstreams and of other services, by name."""


class Asking(Struct, frozen=True):
    """A request that is about to ask a model.

    `chat` is None where the body is passed on as it came. `shows_notices`: the user
    sees sentences that byok adds to the answer. `run` runs what takes long.
    """

    record: RequestRecord
    upstream: str
    model: str
    chat: ChatRequest | None = None
    shows_notices: bool = False
    run: Runner = inline


class Verdict(Struct, frozen=True):
    """What features say to a request: with a `refusal`, no model is asked.

    With an `answer`, byok answers these words itself. `chat` is asked in place of the
    conversation that was given. The user sees the `notices` with the answer.
    """

    refusal: ByokError | None = None
    notices: tuple[str, ...] = ()
    answer: str = ""
    chat: ChatRequest | None = None

    @property
    def ends(self) -> bool:
        """Whether no model is to be asked."""
        return self.refusal is not None or bool(self.answer)


PASS = Verdict()


class Feature:
    """The base of features; its hooks do nothing. Only `close` may block."""

    def __init__(self, site: Site) -> None:
        """Prepare; nothing is opened or read before `configure`."""

    def configure(self, supplies: Supplies, /) -> None:
        """Use these settings from now on; called at the start and at each reload.

        Raises:
            ConfigError: they cannot be used.
        """

    async def admit(self, asking: Asking, /) -> Verdict:
        """Let a request ask its model, change it, or end it; may reserve something."""
        return PASS

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Read a record at its start, as an `Observer` does."""
        return None

    def request_finished(self, record: RequestRecord, /) -> None:
        """Read a record at its end, also a refused one: release what was reserved."""

    @property
    def recalls(self) -> bool:
        """Whether `recall` may be asked now."""
        return False

    async def recall(self, asked: "RetrievalRequest", /) -> str:
        """Return what earlier conversations say to a question, "" for nothing."""
        return ""

    async def answer(self, body: Json, /) -> Json:
        """Answer what a command asks, at /byok/ and the feature's name.

        `byok NAME` prints the `rows` of the answer, as those of the status.

        Raises:
            BadRequest: the body cannot be used.
        """
        return {}

    async def status(self) -> Sequence[StatusRow] | None:
        """Return what `byok status` and the page show, None for nothing at all."""
        return None

    @property
    def own_tools(self) -> "Sequence[OwnTool]":
        """Tools that models are offered and byok runs itself."""
        return ()

    @property
    def feed(self) -> Feed | None:
        """What the page reads as it changes, by the feature's name."""
        return None

    @property
    def page(self) -> OwnPage | None:
        """A page at a path of its own, None while it is off."""
        return None

    @property
    def numbers(self) -> Sequence[Number]:
        """What metrics show of this feature."""
        return ()

    @property
    def unwritten(self) -> int:
        """How many requests wait to be written to a file that other processes read."""
        return 0

    def read_again(self) -> None:
        """Read files anew: the process before, whose port this one has, has ended."""

    def stop(self) -> None:
        """End what pages read, and timers: the daemon stops. May be called twice."""

    def close(self) -> None:
        """Write what is left; in a thread, in the reverse order of the rows."""
