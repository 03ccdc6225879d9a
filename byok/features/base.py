"""The base of features: hooks around every request, and the types that they use.

A feature overrides the hooks that it needs; the others cost nothing. Hooks that decide
(`configure`, `admit`) raise their errors: if a cap cannot be checked, the request is
refused. Hooks that watch (`request_started`, `request_finished`) change no answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct, field

from byok.core.chat import ChatRequest, Json
from byok.core.errors import ByokError
from byok.core.platform.paths import Paths
from byok.core.record import RequestRecord, Tap
from byok.core.redact import Redactor
from byok.core.threads import Runner, inline
from byok.features.cost import PriceOf, no_price
from byok.features.status import StatusRow
from byok.settings.settings import Settings

if TYPE_CHECKING:
    from byok.core.code_query import IndexStatus, RetrievalRequest
    from byok.core.daemon.token import TokenCheck
    from byok.settings.keys.ladder import AnyKey
    from byok.upstream.own_tools import OwnTool


class FeedEnd(StrEnum):
    """Why a page gets no more changes."""

    REPLACED = "replaced"  # by newer readers, of which there were too many
    SESSION = "session"
    STOPPING = "stopping"


class FeedReader:
    """Waits for changes; `seen` is the last version that was read, 0 for none."""

    def __init__(self) -> None:
        self.seen = 0
        self.end: FeedEnd | None = None
        self.on_end: Callable[[], None] | None = None
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Signal a change."""
        self._woken.set()

    def finish(self, reason: FeedEnd) -> None:
        """End the reader; the first reason counts."""
        if self.end is None:
            self.end = reason
            self.wake()
            if self.on_end is not None:
                self.on_end()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change or the end; tell whether it came in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Feed(Protocol):
    """A source of changes for the page."""

    def open_reader(self) -> AbstractContextManager[FeedReader]:
        """Open a reader, which ends with the context."""

    def take(self, reader: FeedReader, /) -> Json:
        """Return the changes since the last ones of a reader."""


class Load(Protocol):
    """The load of the daemon."""

    @property
    def open(self) -> int:
        """The number of answers in progress."""

    @property
    def waiting(self) -> int:
        """The number of requests that wait for their turn."""


class Site(Struct, frozen=True):
    """The services of the daemon that do not depend on its settings.

    `clock` returns seconds since 1970.
    """

    paths: Paths
    redactor: Redactor
    clock: Callable[[], float]
    load: Load


class Number(NamedTuple):
    """A number for the metrics; `kind` is `counter` or `gauge`."""

    name: str
    kind: str
    meaning: str
    value: float


class OwnPage(Struct, frozen=True):
    """A page at a path of its own, for clients with its token.

    `token_hint` says where to get the token. `write` gets the numbers of all features.
    """

    path: str
    content_type: str
    token: "TokenCheck"
    token_hint: str
    write: Callable[[Sequence[Number]], Awaitable[bytes]]


class Supplies(Struct, frozen=True):
    """What depends on the settings.

    Attributes:
        settings: a feature reads its section by `settings.section(TYPE)`.
        price_of: returns the price of a model, None if it is unknown.
        ask_index: requests the status of the code index.
        presets: those of the upstreams, by their names.
        keys: of upstreams and of other services, by name.
    """

    settings: Settings = field(default_factory=Settings)
    price_of: PriceOf = no_price
    ask_index: "Callable[[], Awaitable[IndexStatus]] | None" = None
    presets: Mapping[str, str] = {}
    keys: "Mapping[str, AnyKey]" = {}


class Asking(Struct, frozen=True):
    """A request that is about to ask a model.

    `chat` is None if the body is passed on unchanged. `shows_notices`: the user sees
    sentences that byok adds to the answer. `run` runs functions that take long.
    """

    record: RequestRecord
    upstream: str
    model: str
    chat: ChatRequest | None = None
    shows_notices: bool = False
    run: Runner = inline


class Verdict(Struct, frozen=True):
    """The decision of features about a request.

    With a `refusal`, no model is asked. With an `answer`, byok itself answers with this
    text. A `chat` replaces the conversation. The user sees the `notices` with the
    answer.
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
        """Prepare the feature; `configure` is the first that may open or read files."""

    def configure(self, supplies: Supplies, /) -> None:
        """Use these settings from now on; called at the start and at each reload.

        Raises:
            ConfigError: the settings cannot be used.
        """

    async def admit(self, asking: Asking, /) -> Verdict:
        """Let a request ask its model, change it, or end it; may reserve resources."""
        return PASS

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Process the record of a request at its start, as an `Observer` does."""
        return None

    def request_finished(self, record: RequestRecord, /) -> None:
        """Process a record at its end, also a refused one; release reservations."""

    @property
    def recalls(self) -> bool:
        """Whether `recall` is available now."""
        return False

    async def recall(self, request: "RetrievalRequest", /) -> str:
        """Return passages of earlier conversations about a question, "" for none."""
        return ""

    async def answer(self, body: Json, /) -> Json:
        """Answer the request of a command to /byok/ and the feature's name.

        `byok NAME` prints the `rows` of the answer like those of the status.

        Raises:
            BadRequest: the body cannot be used.
        """
        return {}

    async def status(self) -> Sequence[StatusRow] | None:
        """Return rows for `byok status` and the page, None to show nothing at all."""
        return None

    @property
    def own_tools(self) -> "Sequence[OwnTool]":
        """Tools that are offered to models and run by byok."""
        return ()

    @property
    def feed(self) -> Feed | None:
        """The changes for the page, if the feature has any."""
        return None

    @property
    def page(self) -> OwnPage | None:
        """A page at a path of its own, None while it is off."""
        return None

    @property
    def numbers(self) -> Sequence[Number]:
        """The feature's numbers for the metrics."""
        return ()

    @property
    def unwritten(self) -> int:
        """The number of requests to be written to a file that other processes read."""
        return 0

    def read_again(self) -> None:
        """Read files again: the previous daemon, whose port this one has, has ended."""

    def stop(self) -> None:
        """End feeds and timers: the daemon stops. May be called twice."""

    def close(self) -> None:
        """Write pending data; called in a thread, in the reverse order of the rows."""
