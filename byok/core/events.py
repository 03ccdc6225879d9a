"""Vendor-neutral types of an answer: one model turn as a stream of events."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from byok.core.chat import ProviderData, ToolCall


class FinishReason(StrEnum):
    """The reason why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


class TextDelta(Struct, gc=False):
    """The next piece of the visible text."""

    text: str


class ThinkingDelta(Struct, gc=False):
    """The next piece of the model's reasoning.

    `provider_data` comes with the last piece of a reasoning block, perhaps without
    text, and ends the block.
    """

    text: str
    provider_data: ProviderData | None = None


class ToolCallDelta(Struct, gc=False):
    """A fragment of a tool call; `index` is None if the upstream sent none.

    With `is_printed`, the model wrote the call into its text, and this is the whole
    call.
    """

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    provider_data: ProviderData | None = None
    is_printed: bool = False


class ToolCallPlace(Struct):
    """Marks where a tool call belongs; the complete ToolCall event follows later.

    It is sent before text or thinking that follows a call. A call without this event
    belongs at the end. If the call turns out to be broken, no ToolCall event follows.
    """

    call_id: str


@dataclass(slots=True)
class Usage:
    """Token counts reported by the upstream.

    `input_tokens` includes the tokens that were read from or written to its cache,
    `output_tokens` those of the reasoning. `cache_told` is false if the upstream does
    not report its cache: the counts are 0 then, but in fact unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cache_told: bool = field(default=False, compare=False, kw_only=True)

    def plus(self, other: "Usage | None") -> "Usage":
        """Return the sum of both counts."""
        if other is None:
            return self
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_creation_tokens + other.cache_creation_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            cache_told=self.cache_told or other.cache_told,
        )


@dataclass(slots=True)
class Finish:
    """The upstream reported the end of the turn.

    With `fills_window`, the context window was full. `format` is the name of the format
    of next edits in which the model was asked, "" for plain text.
    """

    reason: FinishReason
    fills_window: bool = field(default=False, compare=False, kw_only=True)
    format: str = field(default="", kw_only=True)


class Notice(Struct):
    """A sentence from byok to the user about this turn, shown after `[byok]`.

    `code` is the error code of a failure; without one, the sentence is only
    information. With `at_once`, it says what byok is doing now, so the user should see
    it before the answer begins. With `is_restart`, the model starts again, and the
    thoughts that were shown so far are void.
    """

    text: str
    code: str = ""
    at_once: bool = False
    is_restart: bool = False


class Citation(Struct):
    """A source of the answer that the upstream names; the title may be empty."""

    url: str
    title: str = ""


StreamEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | ToolCallPlace
    | ToolCall
    | Usage
    | Finish
    | Notice
    | Citation
)


def shows_answer(events: Iterable[StreamEvent]) -> bool:
    """Tell whether any of the events is a part of the answer that the client sees.

    Until then, the question can be asked again, or another model: the user sees nothing
    twice, and no tool runs twice.
    """
    return any(map(_is_part, events))


def begins_answer(batch: Iterable[StreamEvent]) -> bool:
    """Tell whether an answer begins or ends with the events of a network read."""
    return shows_answer(batch) or any(isinstance(event, Finish) for event in batch)


def is_thinking(events: Iterable[StreamEvent]) -> bool:
    """Tell whether the events of an answer are only thoughts.

    After mere thoughts the question can be asked again, with a notice that makes them
    void. The client must not have got the end of a block (`provider_data`), because it
    would send that back.
    """
    return not any(
        isinstance(event, Finish)
        or (_is_part(event) and not isinstance(event, ThinkingDelta))
        for event in events
    )


def _is_part(event: StreamEvent) -> bool:
    match event:
        case TextDelta(text=text):
            return bool(text)
        case ThinkingDelta():
            return bool(event.text or event.provider_data)
        case ToolCallDelta() | ToolCallPlace() | ToolCall() | Citation():
            return True
        case _:
            return False
