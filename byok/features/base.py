"""What a feature is: settings of its own, and hooks around every request.

A feature overrides the hooks that it needs; the others cost nothing. Hooks that decide
(`configure`, `admit`) let errors through: a cap that cannot be checked refuses. Hooks
that watch (`request_started`, `request_finished`) change no answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from byok.chat import ChatRequest, Json
from byok.config.settings import Settings
from byok.errors import ByokError
from byok.features.feed import Feed
from byok.features.status import StatusRow
from byok.journal.cost import PriceOf
from byok.platform.paths import Paths
from byok.record import RequestRecord, Tap
from byok.redact import Redactor


@dataclass(frozen=True, slots=True)
class Site:
    """What a feature may use for as long as the daemon runs.

    `clock` gives seconds since 1970.
    """

    paths: Paths
    redactor: Redactor
    clock: Callable[[], float]


class Supplies(Protocol):
    """What one state of the settings offers to features; `wiring.Services` has it."""

    @property
    def settings(self) -> Settings:
        """All settings; a feature reads its section by `settings.section(TYPE)`."""
        ...

    @property
    def price_of(self) -> PriceOf:
        """What tells the price of a model, None if it is not known."""
        ...

    @property
    def presets(self) -> Mapping[str, str]:
        """The vendors' names of the upstreams, by the names of these."""
        ...


@dataclass(frozen=True, slots=True)
class Asking:
    """A request that is about to ask a model.

    `chat` is None where the body is passed on as it came. `shows_notices`: the user
    sees sentences that byok adds to the answer.
    """

    record: RequestRecord
    upstream: str
    model: str
    chat: ChatRequest | None = None
    shows_notices: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What features say to a request: with a `refusal`, no model is asked.

    The user sees the `notices` with the answer.
    """

    refusal: ByokError | None = None
    notices: tuple[str, ...] = ()


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
        """Let a request ask its model, or refuse it. It may reserve something."""
        del asking
        return PASS

    def request_started(self, record: RequestRecord, /) -> Tap | None:
        """Read a record at its start, as an `Observer` does."""
        del record
        return None

    def request_finished(self, record: RequestRecord, /) -> None:
        """Read a record at its end, also a refused one: release what was reserved."""

    async def answer(self, body: Json, /) -> Json:
        """Answer what a command asks, at /byok/ and the feature's name.

        Raises:
            BadRequest: the body cannot be used.
        """
        del body
        return {}

    async def status(self) -> Sequence[StatusRow] | None:
        """Return what `byok status` and the page show, None for nothing at all."""
        return None

    @property
    def feed(self) -> Feed | None:
        """What the page reads as it changes, by the feature's name."""
        return None

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
