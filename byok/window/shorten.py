"""Shorten what is needed least: retrieved code, middles of old results, images."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from byok.chat import (
    ContextPart,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ToolResult,
)
from byok.truncate import fair_share, keep_ends, truncate_middle

NO_IMAGE = TextPart("[a picture stood here; it was left out to save room]")
# Characters kept at both ends, in the order in which room is sought. The end of a
# result may hold the id by which a client finds the whole of it.
LEVELS = ((1500, 500), (100, 300))
_WORTH_SHOWING = 1000  # bytes of code


def shorten(message: Message, head: int, tail: int) -> Message:
    """Shorten a tool result, or remove the images of a user message or a result.

    A message with nothing to shorten is returned as the same object.
    """
    if message.role not in (Role.TOOL, Role.USER):
        return message
    parts = tuple(_shorter(part, head, tail) for part in message.parts)
    return message if parts == message.parts else replace(message, parts=parts)


def _shorter(part: Part, head: int, tail: int) -> Part:
    if isinstance(part, ImagePart):
        return NO_IMAGE
    if isinstance(part, ToolResult):
        part = without_images(part)
        content = keep_ends(part.content, head, tail)
        return part if content is part.content else replace(part, content=content)
    return part


def without_images(result: ToolResult) -> ToolResult:
    """Return a result with a line of text instead of its images."""
    if not result.images:
        return result
    content = f"{result.content}\n{NO_IMAGE.text}"
    return replace(result, content=content, images=())


def shorter_system(messages: Sequence[Message], room: int) -> tuple[Message, ...]:
    """Cut the middles of system messages that have more than `room` bytes together.

    The size that is left is a power of two, so that it stays the same while what is
    known of a window changes a little: a prompt cache would miss.
    """
    most = 1 << max(0, room.bit_length() - 1)
    sizes = [len(p.text.encode("utf-8", "replace")) for p in _texts(messages)]
    cap = fair_share(sizes, most)
    return tuple(
        replace(m, parts=tuple(_cut(part, cap) for part in m.parts)) for m in messages
    )


def _texts(messages: Sequence[Message]) -> list[TextPart]:
    return [p for m in messages for p in m.parts if isinstance(p, TextPart)]


def _cut(part: Part, most: int) -> Part:
    if not isinstance(part, TextPart):
        return part
    size = len(part.text.encode("utf-8", "replace"))
    if size <= most:
        return part
    return replace(part, text=truncate_middle(part.text, most * len(part.text) // size))


def less_context(messages: Sequence[Message], excess: int) -> tuple[Message, ...]:
    """Remove about `excess` bytes of retrieved code from the last message.

    The end goes first, because the best matches stand first. A small rest goes as well.
    """
    if not messages:
        return ()
    *before, last = messages
    parts: list[Part] = []
    for part in last.parts:
        if isinstance(part, ContextPart):
            raw = part.text.encode("utf-8", "replace")
            kept = raw[: max(0, len(raw) - excess)].rpartition(b"\n")[0]
            excess -= len(raw) - len(kept)
            if len(kept) >= _WORTH_SHOWING:
                parts.append(ContextPart(kept.decode("utf-8", "replace")))
        else:
            parts.append(part)
    return (*before, replace(last, parts=tuple(parts)))


def without_context(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation without any retrieved code in its last message."""
    return less_context(messages, sys.maxsize)
