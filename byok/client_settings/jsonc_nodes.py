"""Read JSON with comments into nodes that know their places in the text.

What VS Code reads without a complaint is read: comments, and a comma behind the last
member. Anything else is an error with its line.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

from byok.client_settings.setting import MAX_DEPTH
from byok.wire.json_body import parse_json

_TRIVIA = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_SCALAR = re.compile(
    r"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null)(?![\w.+-])"
)


class Node(NamedTuple):
    """A value from `start` to `end`; `members` of an object, `items` of a list."""

    start: int
    end: int
    members: "tuple[Member, ...] | None" = None
    items: "tuple[Node, ...] | None" = None


class Member(NamedTuple):
    """A member of an object; `start` is its key's, `comma` -1 if none follows."""

    key: str
    start: int
    node: Node
    comma: int


@lru_cache(maxsize=4)  # the same text is read several times for each change
def parse_nodes(text: str) -> Node | None:
    """Return the value of a text, or None if there are only comments in it.

    Raises:
        ValueError: it cannot be read; the message has the line.
    """
    reader = _Reader(text)
    return reader.document()


def trivia_end(text: str, at: int) -> int:
    """Return where blanks and comments from `at` on end."""
    found = _TRIVIA.match(text, at)
    return found.end() if found else at


def plain_value(text: str, node: Node) -> Any:
    """Return the value of a node; of members of one name the last counts."""
    if node.members is not None:
        return {m.key: plain_value(text, m.node) for m in node.members}
    if node.items is not None:
        return [plain_value(text, item) for item in node.items]
    return parse_json(text[node.start : node.end].encode("utf-8", "surrogatepass"))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> Node | None:
        if not self._next():
            return None
        node = self._value(0)
        if self._next():
            raise self._error("there is something behind the value")
        return node

    def _next(self) -> str:
        """Pass over blanks and comments; return the next character, "" at the end."""
        self._at = trivia_end(self._text, self._at)
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        match self._next():
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"':
                return self._scalar(_STRING, "this text does not end on its line")
            case _:
                return self._scalar(_SCALAR, "there is no value where one must be")

    def _scalar(self, shape: re.Pattern[str], else_it: str) -> Node:
        found = shape.match(self._text, self._at)
        if found is None:
            raise self._error(else_it)
        self._at = found.end()
        return Node(found.start(), found.end())

    def _object(self, depth: int) -> Node:
        start, members = self._at, list[Member]()
        self._at += 1
        while self._next() != "}":
            self._want_comma(bool(members) and members[-1].comma < 0)
            key = self._scalar(_STRING, "there is no name in quotes where one must be")
            if self._next() != ":":
                raise self._error("there is no colon behind a name")
            self._at += 1
            node = self._value(depth + 1)
            members.append(Member(self._name(key), key.start, node, self._comma()))
        self._at += 1
        return Node(start, self._at, members=tuple(members))

    def _list(self, depth: int) -> Node:
        start, items, comma = self._at, list[Node](), 0
        self._at += 1
        while self._next() != "]":
            self._want_comma(comma < 0)
            items.append(self._value(depth + 1))
            comma = self._comma()
        self._at += 1
        return Node(start, self._at, items=tuple(items))

    def _name(self, key: Node) -> str:
        try:
            return str(plain_value(self._text, key))
        except ValueError:
            raise self._error("a name has an escape that JSON does not know") from None

    def _comma(self) -> int:
        if self._next() != ",":
            return -1
        self._at += 1
        return self._at - 1

    def _want_comma(self, is_missing: bool) -> None:
        if is_missing:
            raise self._error("a comma or a closing bracket is missing")

    def _error(self, what: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"line {line}: {what}")
