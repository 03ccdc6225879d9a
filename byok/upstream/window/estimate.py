"""Estimate a conversation's size, and what is known of a model's window.

Bytes, because three or four of them make a token in most texts, and characters do not:
a Chinese character is about one token and has three bytes.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from byok.core.chat import (
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
    parts_of,
)
from byok.core.wire.json_body import write_json

IMAGE_WEIGHT = 5_000  # an image is about 1,400 tokens, whatever its size in bytes
_MESSAGE = 12  # what a chat template adds to a message
_CALL = 24  # and to a call

Weigh: TypeAlias = Callable[[Message], int]


def weigh(message: Message) -> int:
    """Return the weight of a message for an upstream that gets reasoning back.

    Reasoning counts only beside tool calls; no upstream gets it anywhere else.
    """
    if len(message.parts) == 1:
        return weigh_said(message)
    thoughts, has_calls = 0, False
    for part in message.parts:
        if isinstance(part, ThinkingPart):
            thoughts += _bytes(part.text)
        elif isinstance(part, ToolCall):
            has_calls = True
    return weigh_said(message) + (thoughts if has_calls else 0)


def weigh_said(message: Message) -> int:
    """Return the weight of a message without its reasoning."""
    total = _MESSAGE
    for part in message.parts:
        if isinstance(part, TextPart):
            total += _bytes(part.text)
        elif isinstance(part, ToolResult):
            total += _CALL + len(part.call_id) + _bytes(part.content)
            total += IMAGE_WEIGHT * len(part.images)
        elif isinstance(part, ToolCall):
            total += _CALL + len(part.id) + len(part.name) + _bytes(part.arguments)
        elif isinstance(part, ImagePart):
            total += IMAGE_WEIGHT
    return total


def weigh_images(message: Message) -> int:
    """Return the weight of the images in a message's tool results."""
    results = (part for part in message.parts if isinstance(part, ToolResult))
    return IMAGE_WEIGHT * sum(len(result.images) for result in results)


def weigh_tools(tools: Iterable[ToolDefinition]) -> int:
    """Return the weight of the tool definitions, which are part of the prompt."""
    return sum(
        _MESSAGE
        + _bytes(t.name)
        + _bytes(t.description)
        + len(write_json(t.parameters))
        for t in tools
    )


def has_images(messages: Iterable[Message]) -> bool:
    """Tell whether the messages contain any image."""
    return any(
        isinstance(part, ImagePart) or (isinstance(part, ToolResult) and part.images)
        for part in parts_of(messages)
    )


def _bytes(text: str) -> int:
    if text.isascii():  # O(1) for str
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


# The size of one model's context window, as far as it is known or learned.
#
# There are two sources: what is told by the user's setting or the server, and refusals.
# Refusals are always right, but not every upstream names a number in them. The ratio of
# bytes to tokens is learned from the token counts of answers.


BYTES_A_TOKEN = 3.5  # until an answer's token count is known
_FEWEST, _MOST = 1.0, 8.0
_MOST_A_BYTE = 4  # tokens per byte; a larger count cannot be of this prompt alone
_LIGHTEST = 5.5  # bytes per token that are believed; with more, part was cut off
_DOUBT = 1.25  # times the ratio, from where a prompt above the window was surely cut
_TELLING = 500  # tokens; shorter prompts are mostly chat template
_RISE = 0.3
_MARGIN = 0.95  # of the room, because weights are estimates
_ANSWER = 4096  # tokens kept for an answer of unknown length
_GUESS = 0.7  # of a prompt that was refused without a number
_SMALLEST = 2048  # tokens; no guess goes below
_GROWTH = 1.25  # of a guess, when a prompt of half of it succeeds


class WindowLimits(Struct):
    """The context window of one model in tokens, and its ratio of bytes to tokens.

    Attributes:
        told: what the user or the server says, 0 if nobody does.
        learned: what a refusal taught, 0 if nothing.
        ratio: bytes per token.
        answer: tokens that refusals showed to be reserved for answers.
        guessed: the refusal named no number; the window grows again as answers succeed.
    """

    told: int = 0
    learned: int = 0
    ratio: float = BYTES_A_TOKEN
    answer: int = 0
    guessed: bool = False

    def window(self) -> int:
        """Return the window in tokens, 0 if unknown."""
        return min(filter(None, (self.learned, self.told)), default=0)

    def room(self, max_tokens: int | None = None) -> int:
        """Return the maximum weight of a prompt in bytes, 0 if unknown."""
        window = self.window()
        answer = max(max_tokens or min(_ANSWER, window // 8), self.answer)
        tokens = window - min(answer, window // 2)
        return int(tokens * _MARGIN * self.ratio)

    def learn_from_count(self, weight: int, tokens: int) -> bool:
        """Learn from a token count; return False if it cannot belong to this prompt.

        Some servers count what is left of a prompt after they cut it. Such a count must
        not raise the ratio: the room would grow, and more would be cut off. So a count
        within the window does not count where the prompt was estimated to exceed it.

        Otherwise the ratio falls at once and rises slowly, since a ratio that is too
        small only wastes some room.
        """
        if self.guessed and 2 * weight >= self.learned * self.ratio:
            self.learned = int(self.learned * _GROWTH)
        is_short = tokens < _TELLING and weight < _TELLING * _MOST
        if tokens <= 0 or is_short or tokens > weight * _MOST_A_BYTE:
            return True
        seen = weight / tokens
        if seen > _MOST:
            return False
        if tokens <= self.window() < weight / self.ratio:
            return seen <= self.ratio * _DOUBT
        if self.learned and tokens > self.learned:
            self.learned = tokens
        if seen > max(_LIGHTEST, self.ratio):
            return True
        rise = max(0.0, seen - self.ratio) * _RISE
        self.ratio = max(_FEWEST, min(self.ratio, seen) + rise)
        return True

    def learn_from_refusal(
        self, weight: int, window: int | None, counted: int | None
    ) -> None:
        """Learn from a refusal, and from the window and count that it may name."""
        self.guessed = not window
        if counted:
            self.ratio = min(max(weight / counted, _FEWEST), _MOST)
        if window:
            self.learned = window
            if counted:  # it fitted, but left too little room for the answer
                self.answer = max(self.answer, window - counted)
            else:  # it was refused, so it has more tokens than the window
                self.ratio = max(min(self.ratio, weight / window), _FEWEST)
        else:
            self.learned = max(int(_GUESS * weight / self.ratio), _SMALLEST)
