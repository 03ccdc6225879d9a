"""What comes down: one model turn, piece by piece, in no vendor's words."""

from dataclasses import astuple, dataclass
from enum import StrEnum
from typing import TypeAlias

from byok.chat import ProviderData, ToolCall


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(slots=True)
class TextDelta:
    """More visible text."""

    text: str


@dataclass(slots=True)
class ThinkingDelta:
    """More of the model's reasoning.

    `provider_data` comes with the last piece of a block of reasoning, or without any
    text: it ends the block.
    """

    text: str
    provider_data: ProviderData | None = None


@dataclass(slots=True)
class ToolCallDelta:
    """A fragment of a tool call; `index` is None where the upstream sent none."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    provider_data: ProviderData | None = None


@dataclass(slots=True)
class ToolCallPlace:
    """The place of a tool call that comes later, because it is not whole yet.

    It precedes text or thoughts that follow a call; calls without such an event follow
    everything else. A call that turns out to be broken never comes.
    """

    call_id: str


@dataclass(slots=True)
class Usage:
    """Tokens counted by the upstream; `input_tokens` includes the cached part."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0

    def plus(self, other: "Usage | None") -> "Usage":
        """Return the sum."""
        if other is None:
            return self
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(slots=True)
class Finish:
    """The turn is over, by the upstream's own word."""

    reason: FinishReason


@dataclass(slots=True)
class Notice:
    """One sentence that byok owes the user about this turn.

    `code` names what failed; without one the sentence is for information only.
    """

    text: str
    code: str = ""


StreamEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | ToolCallPlace
    | ToolCall
    | Usage
    | Finish
    | Notice
)
