"""What every upstream protocol must be able to say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from byok.chat import ChatRequest, Json
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


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request ready to send; `tool_names` maps names sent to names offered."""

    path: str
    body: dict[str, Any]
    tool_names: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    """One upstream wire protocol. Holds no state, performs no I/O."""

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Write a conversation as this upstream wants to read it."""
        ...

    def auth(self, key: str, quirks: Quirks) -> Mapping[str, str]:
        """Give the headers that carry the key."""
        ...

    def decoder(
        self, tool_names: Mapping[str, str]
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

    def refused_parameter(self, body: Json, message: str, extra: Iterable[str]) -> str:
        """Return the parameter that a refusal names and that can be left out, or "".

        `extra` are the fields that the user added.
        """
        ...

    def without(self, body: Json, refused: Iterable[str]) -> dict[str, Any]:
        """Return a request body without parameters that were refused."""
        ...

    def models(self, body: Any) -> list[str]:
        """Read the ids out of the upstream's model list."""
        ...

    def windows(self, body: Any) -> dict[str, int]:
        """Read how many tokens the models take, as far as the list tells."""
        ...
