"""Estimate the size of a conversation, in bytes.

Bytes, because three or four of them make a token in most texts, and characters do not:
a Chinese character is about one token and has three bytes.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from byok.chat import (
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.wire.json_body import write_json

IMAGE_WEIGHT = 5_000  # an image is about 1,400 tokens, whatever its size in bytes
_MESSAGE = 12  # what a chat template adds to a message
_CALL = 24  # and to a call

Weigh: TypeAlias = Callable[[Message], int]


def weigh(message: Message) -> int:
    """Return the weight of a message for an upstream that gets reasoning back.

    Reasoning counts only beside tool calls; no upstream gets it anywhere else.
    """
    said = weigh_said(message)
    if not any(isinstance(part, ToolCall) for part in message.parts):
        return said
    thoughts = (p.text for p in message.parts if isinstance(p, ThinkingPart))
    return said + sum(map(_bytes, thoughts))


def weigh_said(message: Message) -> int:
    """Return the weight of a message without its reasoning."""
    total = _MESSAGE
    for part in message.parts:
        match part:
            case TextPart(text=text):
                total += _bytes(text)
            case ToolResult(content=content):
                total += _CALL + len(part.call_id) + _bytes(content)
                total += weigh_images(message)
            case ToolCall(arguments=arguments):
                total += _CALL + len(part.id) + len(part.name) + _bytes(arguments)
            case ImagePart():
                total += IMAGE_WEIGHT
            case ThinkingPart():
                pass
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
        for message in messages
        for part in message.parts
    )


def _bytes(text: str) -> int:
    if text.isascii():  # O(1) for str
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))
