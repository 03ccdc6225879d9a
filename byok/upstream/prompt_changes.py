"""Why a prompt cache misses: where a prompt differs from the last one.

Upstreams cache the beginning of a prompt: tools, system message, then the messages. A
request of a conversation should begin with all of the one before. If it does not, the
first difference explains what the cache costs.
"""

import zlib
from collections.abc import Hashable
from itertools import zip_longest
from typing import Any

from byok.core.bounded import BoundedMap
from byok.core.record import current_record
from byok.core.wire.json_body import parse_json, write_json
from byok.upstream.base import Plan, Recovery

_ROOM = 8 * 2**20  # bytes of all requests that are kept
_LONGEST = 2 * 2**20  # bytes of one; longer ones are not compared
# The parts of a request in the order in which they are cached, in all dialects.
_HEADS = ("tools", "system", "instructions", "systemInstruction")
_TURNS = ("messages", "input", "contents")


class _Compressed(bytes):
    """A body that was compressed while the daemon had nothing to do."""


class PromptChanges(Recovery):
    """Keeps the last request of each conversation, the newest ones only.

    It recovers nothing: it notes in the record of a request where its prompt changed.
    """

    def __init__(self, room: int = _ROOM, longest: int = _LONGEST) -> None:
        self._longest = longest
        self._last = BoundedMap[Hashable, bytes](room, lambda _, body: len(body))

    def on_answer_start(self, plan: Plan) -> None:
        """Compare the request of an answer that begins with the one before it."""
        if plan.written is None or not (conversation := plan.request.conversation):
            return
        key = (conversation, plan.written.head.origin)
        current_record().prompt_change = self.note(key, plan.written.content)

    def compress(self) -> None:
        """Keep all bodies in a fifth of their bytes; takes 10 ms for each megabyte."""
        for conversation, body in self._last.items():
            if not isinstance(body, _Compressed):
                self._last[conversation] = _Compressed(zlib.compress(body, 1))

    def note(self, conversation: Hashable, content: bytes) -> str:
        """Keep the body of a request; return where it differs from the last one.

        That is a part and a byte in it, such as `messages[0], byte 73`. It is "" if the
        body begins with the whole last prompt, or is the first of its conversation.
        """
        before = self._last.pop(conversation)
        if isinstance(before, _Compressed):
            before = zlib.decompress(before)
        if len(content) <= self._longest:
            self._last[conversation] = content
        return find_change(before, content) if before else ""


def find_change(before: bytes, now: bytes) -> str:
    """Return the first difference of two bodies, "" if `now` only has more turns."""
    same = _common(before, now)
    if now.endswith(before[same:]):  # more was inserted, and nothing else changed
        if before[same : same + 1] == b"]" and now[same : same + 1] == b",":
            return ""
        if same == len(before) == len(now):
            return ""
    old, new = parse_json(before), parse_json(now)
    for name in _HEADS:
        if change := _compare(name, old.get(name), new.get(name)):
            return change
    for name in _TURNS:
        for place, turn in enumerate(old.get(name) or ()):
            turns = new.get(name) or ()
            other = turns[place] if place < len(turns) else None
            if change := _compare(f"{name}[{place}]", turn, other):
                return change
    return ""


def _compare(name: str, old: Any, new: Any) -> str:
    if old == new:
        return ""
    if isinstance(old, list) and isinstance(new, list):
        for place, (one, other) in enumerate(zip_longest(old, new)):
            if change := _compare(f"{name}[{place}]", one, other):
                return change
    return f"{name}, byte {_common(write_json(old), write_json(new))}"


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
