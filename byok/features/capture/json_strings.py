"""Find the strings of JSON within any text: bodies, lines, server-sent events.

The places are those of the text itself, so whatever stands there can be replaced
without writing the JSON anew. Broken JSON is read as far as it goes.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Possessive: else 128 bytes are kept for each letter of a string, to go back to.
_TOKEN = re.compile(r'"([^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+)("?)|[{}\[\]:,]|\n')
_DEEPEST = 200


class JsonString(NamedTuple):
    """A string without its quotes: where it begins and ends, and the keys above it.

    `is_key` tells the name of a field; its `path` ends with the field around it.
    """

    start: int
    end: int
    path: tuple[str, ...]
    is_key: bool


def find_strings(text: str) -> Iterator[JsonString]:
    """Yield the strings in their order; lists add nothing to a path."""
    place = _Place()
    for token in _TOKEN.finditer(text):
        if text[token.start()] != '"':
            place.read(text, token)
            continue
        start, end = token.span(1)
        is_key = place.awaits_key and _is_followed_by_colon(text, token.end())
        yield JsonString(start, end, place.path, is_key)
        if is_key:
            place.key = text[start:end]


class _Place:
    """Where in a value the reader is: the keys around it, innermost last."""

    def __init__(self) -> None:
        self._stack: list[str | None] = []  # the key in each object, None for a list
        self.awaits_key = False
        self.key = ""
        self.path: tuple[str, ...] = ()

    def read(self, text: str, token: re.Match[str]) -> None:
        """Read a mark between strings."""
        match text[token.start()]:
            case "," if self._stack:
                self.awaits_key = self._stack[-1] is not None
                if self.awaits_key:
                    self._stack[-1] = ""
            case "{" | "[" as mark if len(self._stack) < _DEEPEST:
                self._stack.append("" if mark == "{" else None)
                self.awaits_key = mark == "{"
            case "}" | "]" if self._stack:
                self._stack.pop()
                self.awaits_key = False
            case ":" if self._stack and self._stack[-1] is not None:
                self._stack[-1] = self.key
                self.awaits_key = False
            case "\n" if text.startswith("data:", token.end()):
                self._stack.clear()  # an event begins anew
            case _:
                return
        self.path = tuple(key for key in self._stack if key)


def _is_followed_by_colon(text: str, at: int) -> bool:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at < len(text) and text[at] == ":"
