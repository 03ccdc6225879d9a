"""Memory for the provider data of tool calls, which no client keeps.

A client stores a call's id, name and arguments and drops everything else. So the data
is kept here by upstream, model and call id, and added again when the call comes back in
the history. It is lost when the daemon ends; a dialect must work without it.
"""

from collections import OrderedDict
from dataclasses import replace
from typing import TypeAlias

from byok.chat import ChatRequest, Message, Part, ProviderData, ToolCall
from byok.wire.json_body import write_json

_ROOM = 16 * 2**20  # bytes of everything that is kept
_ENTRY = 400  # bytes of an entry besides its text

_Key: TypeAlias = tuple[str, str, str]  # upstream, model, call id


class ProviderDataMemory:
    """The provider data of recent tool calls; the least recently used goes first."""

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._size = 0
        self._kept: OrderedDict[_Key, tuple[ProviderData, int]] = OrderedDict()

    def keep(self, call: ToolCall) -> None:
        """Store the provider data of a call, if it has any."""
        if not (kept := call.provider_data):
            return
        key = (kept.origin.upstream, kept.origin.model, call.id)
        if key in self._kept:
            self._size -= self._kept.pop(key)[1]
        size = _ENTRY + len(call.id) + len(write_json(kept.data))
        self._kept[key] = (kept, size)
        self._size += size
        while self._size > self._room:
            self._size -= self._kept.popitem(last=False)[1][1]

    def restore(self, upstream: str, model: str, chat: ChatRequest) -> ChatRequest:
        """Return the conversation with the data that this upstream's model sent."""
        if not self._kept:
            return chat
        messages = (self._message(upstream, model, m) for m in chat.messages)
        return replace(chat, messages=tuple(messages))

    def _message(self, upstream: str, model: str, message: Message) -> Message:
        if not any(isinstance(part, ToolCall) for part in message.parts):
            return message
        parts = tuple(self._part(upstream, model, part) for part in message.parts)
        return replace(message, parts=parts)

    def _part(self, upstream: str, model: str, part: Part) -> Part:
        if not isinstance(part, ToolCall):
            return part
        key = (upstream, model, part.id)
        if key not in self._kept:
            return part
        self._kept.move_to_end(key)
        return replace(part, provider_data=self._kept[key][0])
