"""What every upstream protocol must be able to say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from byok.chat import NO_ORIGIN, ChatRequest, Json, Origin
from byok.dialects.quirks import Quirks
from byok.errors import UpstreamRefused
from byok.events import StreamEvent
from byok.stage import Stage
from byok.wire.sse import ServerSentEvent


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a request is for: the model's name there, and what it cannot do."""

    model: str
    quirks: Quirks
    extra_body: Json = field(default_factory=dict)
    upstream: str = ""


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request ready to send; `tool_names` maps names sent to names offered.

    `origin` marks the provider data of its answer.
    """

    path: str
    body: dict[str, Any]
    tool_names: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = NO_ORIGIN


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which a model takes a request that it refused.

    `change` is a row of the dialect's table, `what` the part of the request that it is
    about; `version` tells that part from a later one of the same name.
    """

    change: str
    what: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Mended:
    """A request body with remedies, and what the user should be told of them."""

    body: dict[str, Any]
    notices: tuple[str, ...] = ()


class Dialect(Protocol):
    """One upstream wire protocol. Holds no state, performs no I/O."""

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write a conversation as this upstream wants to read it."""
        ...

    def auth(self, key: str, quirks: Quirks) -> Mapping[str, str]:
        """Give the headers that carry the key."""
        ...

    def decoder(
        self, tool_names: Mapping[str, str], origin: Origin = NO_ORIGIN
    ) -> Stage[ServerSentEvent, StreamEvent]:
        """Give a fresh reader for one answer, streamed or whole.

        It ends with exactly one Finish, or raises an UpstreamError.
        """
        ...

    def refusal(
        self, body: Any, status: int, retry_after: float | None
    ) -> UpstreamRefused:
        """Make the error of an error answer; its body may be any JSON or plain text."""
        ...

    def presume(self, quirks: Quirks) -> tuple[Remedy, ...]:
        """Return what is known of a vendor before any refusal."""
        ...

    def remedy(
        self,
        body: Json,
        error: UpstreamRefused,
        known: Iterable[Remedy],
        extra: Iterable[str],
    ) -> Remedy | None:
        """Return the change that a refusal asks for, None where there is no more.

        `known` were made before; `extra` are the fields that the user added.
        """
        ...

    def apply(
        self, body: Json, remedies: Iterable[Remedy], *, new: bool, agent: bool
    ) -> Mended:
        """Make these changes. What is `new` is told at any rate."""
        ...

    def models(self, body: Any) -> list[str]:
        """Read the ids out of the upstream's model list."""
        ...

    def windows(self, body: Any) -> dict[str, int]:
        """Read how many tokens the models take, as far as the list tells."""
        ...
