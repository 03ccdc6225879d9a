"""Remember compactions, so that the next turn sends the same prefix.

A compaction is found by the digest of the messages that it replaced. After an edit of
an old message, or in another conversation, the digest differs and none is found.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from byok.core.bounded import BoundedMap
from byok.core.chat import (
    ImagePart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.wire.json_body import write_json
from byok.upstream.window.compaction import CompactionPlan

_ROOM = 16 * 2**20  # bytes of everything that is kept
_ENTRY = 200  # bytes of a part without its text


@dataclass(frozen=True, slots=True)
class Compaction:
    """The replacement of the first `length` messages (without the system message)."""

    length: int
    messages: tuple[Message, ...]

    def apply(self, body: Sequence[Message]) -> tuple[Message, ...]:
        """Return a conversation with its beginning replaced."""
        return (*self.messages, *body[self.length :])

    def further(self, made: CompactionPlan, summary: str) -> "Compaction":
        """Return the compaction that results from a further plan on top of this one."""
        length = max(made.length, len(self.messages))
        return Compaction(
            length - len(self.messages) + self.length, made.front(summary, length)
        )


class Compactions:
    """The most recently used compactions, up to a number of bytes.

    The caller makes the digests (`digests`), because those of a long conversation take
    time.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._kept = BoundedMap[tuple[str, bytes], Compaction](
            room, lambda _, made: _size(made.messages)
        )

    def knows(self, model: str) -> bool:
        """Tell whether there is any compaction for a model."""
        return any(name == model for name, _ in self._kept)

    def lengths(self, model: str) -> set[int]:
        """Return the lengths of the beginnings that have a compaction."""
        return {c.length for (name, _), c in self._kept.items() if name == model}

    def find(self, model: str, digests: Sequence[bytes]) -> Compaction | None:
        """Return the compaction of the longest of these beginnings that has one."""
        keys = ((model, digest) for digest in reversed(digests))
        found = next((key for key in keys if key in self._kept), None)
        return None if found is None else self._kept.get(found)

    def keep(self, model: str, digest: bytes, compaction: Compaction) -> None:
        """Store the compaction of the beginning with this digest."""
        self._kept[model, digest] = compaction


def _size(messages: Iterable[Message]) -> int:
    """Return about how many bytes messages take; an image may take millions."""
    parts = [part for message in messages for part in message.parts]
    return _ENTRY + sum(_ENTRY + sum(map(len, _texts(part))) for part in parts)


def digests(body: Sequence[Message], lengths: Iterable[int]) -> list[bytes]:
    """Return the digests of the beginnings with these lengths, the shortest first."""
    return list(_digests(body, lengths))


def _digests(body: Sequence[Message], lengths: Iterable[int]) -> Iterator[bytes]:
    state, done = hashlib.blake2b(digest_size=16), 0
    for length in sorted(lengths):
        if length > len(body):
            return
        for message in body[done:length]:
            state.update(b"%d %s" % (len(message.parts), message.role.encode()))
            for part in message.parts:
                for text in _texts(part):
                    raw = text.encode("utf-8", "surrogatepass")
                    state.update(b"|%d|" % len(raw))
                    state.update(raw)
        done = length
        yield state.copy().digest()


def _texts(part: Part) -> tuple[str, ...]:
    """Return the kind of a part and all its text, for digests."""
    match part:
        case TextPart(text=text):
            return ("text", text)
        case ThinkingPart(text=text):
            kept = part.provider_data
            data = (write_json(kept.data).decode(),) if kept else ()
            return ("thinking", text, *data)
        case ImagePart(media_type=media_type, data=data):
            return ("image", media_type, data)
        case ToolCall(id=id_, name=name, arguments=arguments):
            return ("call", id_, name, arguments)
        case ToolResult(call_id=call_id, name=name, content=content):
            kind = "error" if part.is_error else "result"
            images = (text for image in part.images for text in _texts(image))
            return (kind, call_id, name, content, *images)
