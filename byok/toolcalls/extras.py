"""What providers want back with their own tool calls, because no client keeps it.

It is kept exactly, by the origin and the id of the call: another model does not
understand it, and may refuse it.
"""

from collections import OrderedDict
from dataclasses import replace
from typing import TypeAlias

from byok.chat import ChatRequest, Json, Message, Part, ToolCall
from byok.wire.json_body import write_json

_ROOM = 16 * 2**20  # bytes of everything that is kept
_ENTRY = 400  # bytes that one of them takes beside its text

Origin: TypeAlias = tuple[str, str]  # the upstream, and the model's name there


class CallExtras:
    """The extra data of tool calls; what was not used for longest goes first."""

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._size = 0
        self._kept: OrderedDict[tuple[Origin, str], tuple[Json, int]] = OrderedDict()

    def keep(self, origin: Origin, call: ToolCall) -> None:
        """Keep what came with a call."""
        if not call.extra:
            return
        key = (origin, call.id)
        _, before = self._kept.pop(key, ({}, 0))
        size = _ENTRY + len(call.id) + len(write_json(call.extra))
        self._kept[key] = (call.extra, size)
        self._size += size - before
        while self._size > self._room:
            _, (_, size) = self._kept.popitem(last=False)
            self._size -= size

    def restore(self, origin: Origin, chat: ChatRequest) -> ChatRequest:
        """Return a conversation with what this origin wants back."""
        if not self._kept:
            return chat
        messages = (self._message(origin, message) for message in chat.messages)
        return replace(chat, messages=tuple(messages))

    def _message(self, origin: Origin, message: Message) -> Message:
        if not any(isinstance(part, ToolCall) for part in message.parts):
            return message
        return replace(
            message, parts=tuple(self._part(origin, part) for part in message.parts)
        )

    def _part(self, origin: Origin, part: Part) -> Part:
        if not isinstance(part, ToolCall) or (origin, part.id) not in self._kept:
            return part
        self._kept.move_to_end((origin, part.id))
        return replace(part, extra=self._kept[origin, part.id][0])
