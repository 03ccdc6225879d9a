"""Arguments of a tool call that come in pieces, each at a path in the object.

A piece is `{"jsonPath": "$.files[0].path", "stringValue": "a", "willContinue": true}`
(Vertex AI API reference, PartialArg). Pieces of one string follow each other, and the
items of an array come in their order.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from byok.errors import UpstreamGarbled
from byok.wire.json_body import write_json

_STEP = re.compile(
    r"\.(?P<name>[^.\[\]]+)"
    r"|\[(?P<index>\d{1,6})\]"
    r"|\['(?P<single>(?:[^'\\]|\\.)*)'\]"
    r'|\["(?P<double>(?:[^"\\]|\\.)*)"\]'
)
_ESCAPED = re.compile(r"\\(.)")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_DEEPEST = 64


class PartialArguments:
    """Joins the pieces of one call's arguments; the work is linear in their size."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self._path = ""  # of the string that may go on
        self._string: list[str] = []
        self._place: tuple[Any, str | int] = (self._root, "")

    def feed(self, pieces: Any) -> None:
        """Take the pieces of one event; anything that is no piece is ignored.

        Raises:
            UpstreamGarbled: a path leads through a value that is no object or array.
        """
        for piece in pieces if isinstance(pieces, list) else ():
            if isinstance(piece, dict) and isinstance(piece.get("jsonPath"), str):
                self._take(piece["jsonPath"], piece)

    def text(self, *, is_whole: bool = True) -> str:
        """Return the JSON so far; that of a call that never ended is left open."""
        self._end_string()
        written = write_json(self._root).decode()
        return written if is_whole else written[:-1]

    def _take(self, path: str, piece: dict[str, Any]) -> None:
        kind = next((name for name in _VALUES if name in piece), "")
        value = piece.get(kind)
        if self._string and path == self._path and isinstance(value, str):
            self._string.append(value)
            return
        self._end_string()
        steps = [*_steps(path)]
        if not kind or not steps:
            return
        node: Any = self._root
        for step, after in pairwise(steps):
            node = _child(node, step, [] if isinstance(after, int) else {})
        _child(node, steps[-1], None)
        node[steps[-1]] = None if kind == "nullValue" else _number(value)
        if kind == "stringValue" and isinstance(value, str):
            self._path, self._string, self._place = path, [value], (node, steps[-1])

    def _end_string(self) -> None:
        if self._string:
            node, step = self._place
            node[step] = "".join(self._string)
            self._string = []


def _steps(path: str) -> Iterator[str | int]:
    """Split a path into keys and indexes.

    Raises:
        UpstreamGarbled: it is no such path, or too deep.
    """
    at, count = 1, 0
    while at < len(path):
        found = _STEP.match(path, at)
        count += 1
        if found is None or path[0] != "$" or count > _DEEPEST:
            raise _no_place(path)
        at = found.end()
        if found["index"] is not None:
            yield int(found["index"])
        else:
            yield _ESCAPED.sub(r"\1", next(filter(None, found.groups()), ""))


def _child(node: Any, step: str | int, empty: Any) -> Any:
    """Return what is at a step, which is `empty` where nothing is yet."""
    if isinstance(step, str) and isinstance(node, dict):
        return node.setdefault(step, empty)
    if isinstance(step, int) and isinstance(node, list) and step <= len(node):
        node += [empty] * (step == len(node))
        return node[step]
    raise _no_place(str(step))


def _number(value: Any) -> Any:
    """Return a whole number as such: all of them come as floating point."""
    is_whole = isinstance(value, float) and value == int(value)
    return int(value) if is_whole and abs(value) < 2**53 else value


def _no_place(path: str) -> UpstreamGarbled:
    return UpstreamGarbled(
        f"a piece of a tool call's arguments has no place: {path[:80]}.",
        retryable=True,
    )
