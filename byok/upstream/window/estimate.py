"""Estimate the size of a conversation, and learn the size of a model's context window.

Weights are in bytes, because three or four of them make a token in most texts. Counts
of characters do not: a Chinese character is about one token and has three bytes.
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
_MESSAGE_BYTES = 12  # what a chat template adds to a message
_CALL_BYTES = 24  # and to a call

# Bytes per token
BYTES_A_TOKEN = 3.5  # until an answer's token count is known
_MIN_RATIO, _MAX_RATIO = 1.0, 8.0
_MAX_PLAUSIBLE_RATIO = 5.5  # a larger one means that part of the prompt was cut off
_DOUBT_FACTOR = 1.25  # times the ratio: above it, a prompt beyond the window was cut
_RISE = 0.3  # of the difference, when the ratio grows
# Tokens
_MAX_TOKENS_PER_BYTE = 4  # a larger count cannot be of this prompt alone
_MIN_COUNT = 500  # shorter prompts are mostly chat template
_DEFAULT_ANSWER_TOKENS = 4096  # reserved for an answer of unknown length
_MIN_GUESS = 2048
# Shares
_MARGIN = 0.95  # of the budget, because weights are estimates
_GUESS = 0.7  # of a prompt that was refused without a number
_GROWTH = 1.25  # of a guess, when a prompt of half of it succeeds

Weigh: TypeAlias = Callable[[Message], int]


def weigh(message: Message) -> int:
    """Return the weight of a message for an upstream that gets reasoning back.

    Reasoning counts only in messages with tool calls; no other reasoning is sent back.
    """
    if len(message.parts) == 1:
        return weigh_without_thoughts(message)
    thoughts, has_calls = 0, False
    for part in message.parts:
        if isinstance(part, ThinkingPart):
            thoughts += _bytes(part.text)
        elif isinstance(part, ToolCall):
            has_calls = True
    return weigh_without_thoughts(message) + (thoughts if has_calls else 0)


def weigh_without_thoughts(message: Message) -> int:
    """Return the weight of a message without its reasoning."""
    total = _MESSAGE_BYTES
    for part in message.parts:
        if isinstance(part, TextPart):
            total += _bytes(part.text)
        elif isinstance(part, ToolResult):
            total += _CALL_BYTES + len(part.call_id) + _bytes(part.content)
            total += IMAGE_WEIGHT * len(part.images)
        elif isinstance(part, ToolCall):
            total += (
                _CALL_BYTES + len(part.id) + len(part.name) + _bytes(part.arguments)
            )
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
        _MESSAGE_BYTES
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


class WindowLimits(Struct):
    """The context window of one model in tokens, and its ratio of bytes to tokens.

    The window is known from two sources: the report of the user's setting or of the
    server, and refusals. Refusals are always right, but not all of them name a number.
    The ratio is learned from the token counts of answers.

    Attributes:
        reported: the window that the user or the server reports, 0 for none.
        learned: the window that a refusal taught, 0 for none.
        ratio: bytes per token.
        answer: the tokens that refusals showed to be reserved for answers.
        guessed: whether the refusal named no number; the window then grows again as
            answers succeed.
    """

    reported: int = 0
    learned: int = 0
    ratio: float = BYTES_A_TOKEN
    answer: int = 0
    guessed: bool = False

    def window(self) -> int:
        """Return the window in tokens, 0 if it is unknown."""
        return min(filter(None, (self.learned, self.reported)), default=0)

    def budget(self, max_tokens: int | None = None) -> int:
        """Return the maximum weight of a prompt in bytes, 0 if it is unknown."""
        window = self.window()
        default = min(_DEFAULT_ANSWER_TOKENS, window // 8)
        answer = max(max_tokens or default, self.answer)
        tokens = window - min(answer, window // 2)
        return int(tokens * _MARGIN * self.ratio)

    def learn_from_count(self, weight: int, tokens: int) -> bool:
        """Learn from a token count; return False if it cannot belong to this prompt.

        Some servers cut a prompt, and count only the remaining tokens. Such a count
        must not raise the ratio: the budget would grow, and more would be cut off. So a
        count within the window is ignored if the prompt was estimated to exceed it.

        Otherwise the ratio falls at once and rises slowly, since a ratio that is too
        small only wastes some space.
        """
        if self.guessed and 2 * weight >= self.learned * self.ratio:
            self.learned = int(self.learned * _GROWTH)
        is_short = tokens < _MIN_COUNT and weight < _MIN_COUNT * _MAX_RATIO
        if tokens <= 0 or is_short or tokens > weight * _MAX_TOKENS_PER_BYTE:
            return True
        ratio = weight / tokens
        if ratio > _MAX_RATIO:
            return False
        if tokens <= self.window() < weight / self.ratio:
            return ratio <= self.ratio * _DOUBT_FACTOR
        if self.learned and tokens > self.learned:
            self.learned = tokens
        if ratio > max(_MAX_PLAUSIBLE_RATIO, self.ratio):
            return True
        rise = max(0.0, ratio - self.ratio) * _RISE
        self.ratio = max(_MIN_RATIO, min(self.ratio, ratio) + rise)
        return True

    def learn_from_refusal(
        self, weight: int, window: int | None, counted: int | None
    ) -> None:
        """Learn from a refusal, and from the window and count that it may name."""
        self.guessed = not window
        if counted:
            self.ratio = min(max(weight / counted, _MIN_RATIO), _MAX_RATIO)
        if window:
            self.learned = window
            if counted:  # the prompt fitted, but left too few tokens for the answer
                self.answer = max(self.answer, window - counted)
            else:  # the prompt was refused, so it has more tokens than the window
                self.ratio = max(min(self.ratio, weight / window), _MIN_RATIO)
        else:
            self.learned = max(int(_GUESS * weight / self.ratio), _MIN_GUESS)
