"""Finds why a prompt cache misses: where a prompt differs from the last one.

Upstreams cache the prefix of a prompt: tools, system message, then the messages. Each
request of a conversation should begin with all of the request before. If it does not,
the first difference explains the cache miss.
"""

import zlib
from collections.abc import Hashable
from itertools import zip_longest
from typing import Any

from byok.core.bounded import BoundedMap
from byok.core.record import current_record
from byok.core.wire.json_body import parse_json, write_json
from byok.upstream.base import Plan, Recovery

_MAX_STORED_BYTES = 8 * 2**20  # of all requests
_MAX_BODY_BYTES = 2 * 2**20  # longer requests are not compared
# The fields of a request in the order in which they are cached, in all dialects.
_HEADS = ("tools", "system", "instructions", "systemInstruction")
_TURNS = ("messages", "input", "contents")


class _Compressed(bytes):
    """A body that was compressed while the daemon was idle."""


class PromptChanges(Recovery):
    """Stores the last request of each recent conversation, to compare the next one.

    It recovers nothing: it adds to the record of a request where its prompt changed.
    """

    def __init__(
        self, max_stored: int = _MAX_STORED_BYTES, max_body: int = _MAX_BODY_BYTES
    ) -> None:
        self._max_body = max_body
        self._last = BoundedMap[Hashable, bytes](max_stored, lambda _, body: len(body))

    def on_answer_start(self, plan: Plan) -> None:
        """Compare the request with the one before it."""
        if plan.written is None or not (conversation := plan.request.conversation):
            return
        key = (conversation, plan.written.head.origin)
        current_record().prompt_change = self.compare(key, plan.written.content)

    def compress(self) -> None:
        """Compress all bodies to about a fifth; takes 10 ms for each megabyte."""
        for conversation, body in self._last.items():
            if not isinstance(body, _Compressed):
                self._last[conversation] = _Compressed(zlib.compress(body, 1))

    def compare(self, conversation: Hashable, content: bytes) -> str:
        """Store the body of a request; return where it differs from the last one.

        The result is a field and an offset in it, such as `messages[0], byte 73`. It is
        "" for a first request, and for a body that begins with the whole last prompt.
        """
        last = self._last.pop(conversation)
        if isinstance(last, _Compressed):
            last = zlib.decompress(last)
        if len(content) <= self._max_body:
            self._last[conversation] = content
        return find_change(last, content) if last else ""


def find_change(old_body: bytes, new_body: bytes) -> str:
    """Return the first difference of two bodies, "" if the new only has more turns."""
    same = _common_length(old_body, new_body)
    if new_body.endswith(old_body[same:]):  # something was inserted, nothing changed
        if old_body[same : same + 1] == b"]" and new_body[same : same + 1] == b",":
            return ""
        if same == len(old_body) == len(new_body):
            return ""
    old, new = parse_json(old_body), parse_json(new_body)
    for name in _HEADS:
        if change := _compare(name, old.get(name), new.get(name)):
            return change
    for name in _TURNS:
        new_turns = new.get(name) or ()
        for index, turn in enumerate(old.get(name) or ()):
            new_turn = new_turns[index] if index < len(new_turns) else None
            if change := _compare(f"{name}[{index}]", turn, new_turn):
                return change
    return ""


def _compare(name: str, old: Any, new: Any) -> str:
    if old == new:
        return ""
    if isinstance(old, list) and isinstance(new, list):
        for index, (old_item, new_item) in enumerate(zip_longest(old, new)):
            if change := _compare(f"{name}[{index}]", old_item, new_item):
                return change
    return f"{name}, byte {_common_length(write_json(old), write_json(new))}"


def _common_length(first: bytes, second: bytes) -> int:
    """Return the length of the longest common prefix, by binary search."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
