"""Values in brackets, as JSON with comments and TOML write them: places and edits.

A reader gives nodes that know their places in the text; edits are spans of it with the
text that stands there instead. So all else stays byte for byte.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from byok.clients.editor import MAX_DEPTH, SettingPath

UNIT = "    "  # the indentation of a file that has none; VS Code's default
_BLANKS = " \t\r"


class Syntax(NamedTuple):
    """How a format writes its parts; `trivia` are blanks and comments.

    `read_key` returns the path that a key stands for, `remarks` are the comments that
    may follow on a line.
    """

    trivia: re.Pattern[str]
    key: re.Pattern[str]
    quoted: re.Pattern[str]
    scalar: re.Pattern[str]
    equals: str
    read_key: Callable[[str], SettingPath]
    remarks: re.Pattern[str]


class Node(NamedTuple):
    """A value from `start` to `end`; `members` of an object, `items` of a list."""

    start: int
    end: int
    members: "tuple[Part, ...] | None" = None
    items: "tuple[Part, ...] | None" = None

    @property
    def parts(self) -> "tuple[Part, ...]":
        """What stands between the brackets."""
        return self.members or self.items or ()


class Part(NamedTuple):
    """A member of an object, or an item of a list, which has no key.

    `comma` is where the comma behind it is, -1 if there is none.
    """

    key: SettingPath
    start: int
    node: Node
    comma: int = -1


class ValuePlace(NamedTuple):
    """The last object on the way to a path, and what of it leads on.

    `part` is None if the rest of the path is not in the object.
    """

    owner: Node
    part: Part | None
    rest: SettingPath

    @property
    def found(self) -> Node | None:
        """The value at the path, if there is one."""
        return self.part.node if self.part and not self.rest else None


class Edit(NamedTuple):
    """A span of a text, and what stands there instead."""

    start: int
    end: int
    text: str


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits; of two at one place the first comes first."""
    done, parts = 0, list[str]()
    for start, end, new in sorted(edits, key=lambda edit: edit.start):
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def locate_path(root: Node, path: SettingPath) -> ValuePlace:
    """Follow a path through objects, as far as there are any.

    Raises:
        ValueError: a name on the way stands there twice.
    """
    place = ValuePlace(root, Part((), root.start, root), path)
    while place.part and place.rest and place.part.node.members is not None:
        owner, rest = place.part.node, place.rest
        same = [part for part in owner.parts if rest[: len(part.key)] == part.key]
        if len(same) > 1:
            raise ValueError(f'"{same[0].key[-1]}" stands there twice')
        place = ValuePlace(owner, None, rest)
        if same:
            place = ValuePlace(owner, same[0], rest[len(same[0].key) :])
    return place


def append_part(
    text: str, node: Node, new: str, syntax: Syntax, *, indent: str | None
) -> list[Edit]:
    """Append a part to an object or list; None is the indentation of one line."""
    if not node.parts:
        return [_append_first(text, node, new, indent)]
    last = node.parts[-1]
    after = last.comma + 1 if last.comma >= 0 else last.node.end
    behind = trivia_end(text, after, syntax)
    ending = "," if last.comma >= 0 else ""
    edits = [] if last.comma >= 0 else [Edit(last.node.end, last.node.end, ",")]
    if indent is None or "\n" not in text[node.start : behind]:
        return [*edits, Edit(after, after, f" {new}{ending}")]
    place = after
    while found := syntax.remarks.match(text, place, behind):
        place = found.end()
    place = after + len(text[after:place].rstrip(_BLANKS))
    return [*edits, Edit(place, place, f"\n{indent}{new}{ending}")]


def _append_first(text: str, node: Node, new: str, indent: str | None) -> Edit:
    """Insert the only part behind the comments of an object."""
    end = node.end - 1
    if indent is None:
        return Edit(node.start + 1, end, new)
    place = node.start + 1 + len(text[node.start + 1 : end].rstrip(_BLANKS + "\n"))
    newline = "" if "\n" in text[place:end] else f"\n{_line_indent(text, node.start)}"
    return Edit(place, place, f"\n{indent}{new}{newline}")


def cut_part(text: str, owner: Node, part: Part) -> list[Edit]:
    """Take a part out, with its line if nothing else is on it."""
    start, at = part.start, owner.parts.index(part)
    end = part.comma + 1 if part.comma >= 0 else part.node.end
    line = text.rfind("\n", 0, start) + 1
    rest = text.find("\n", end)
    before, behind = text[line:start], text[end : None if rest < 0 else rest]
    if rest >= 0 and not (before.strip(_BLANKS) or behind.strip(_BLANKS)):
        start, end = line, rest + 1
    elif part.comma >= 0:
        end += len(behind) - len(behind.lstrip(" \t"))
    else:
        start -= len(before) - len(before.rstrip(" \t"))
    edits = [Edit(start, end, "")]
    if part.comma < 0 and at:  # the comma before it would be left over
        comma = owner.parts[at - 1].comma
        edits.append(Edit(comma, comma + 1, ""))
    return edits


def part_indent(text: str, node: Node, unit: str = UNIT) -> str:
    """Return the indentation of the first part that has a line of its own."""
    for part in node.parts:
        own = own_indent(text, part.start)
        if own is not None:
            return own
    return _line_indent(text, node.start) + unit


def own_indent(text: str, start: int) -> str | None:
    """Return the blanks before a place, if there is nothing else on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if "\n" in text[:start] and not before.strip(_BLANKS) else None


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def trivia_end(text: str, at: int, syntax: Syntax) -> int:
    """Return where blanks and comments from `at` on end."""
    found = syntax.trivia.match(text, at)
    return found.end() if found else at


class BracketReader:
    """Reads values of a text from a place on.

    Raises:
        ValueError: it cannot be read; the message has the line.
    """

    def __init__(self, text: str, syntax: Syntax, at: int = 0) -> None:
        self._text = text
        self._syntax = syntax
        self._at = at

    def read_document(self) -> Node | None:
        """Return the value of the whole text, None if there are only comments."""
        if not self._next():
            return None
        node = self.read_value()
        if self._next():
            raise self._error("there is something behind the value")
        return node

    def read_value(self, depth: int = 0) -> Node:
        """Read a value, with all that is in it."""
        if depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        match self._next():
            case "{":
                return self._parts("}", depth)
            case "[":
                return self._parts("]", depth)
            case "'" | '"':
                return self._match(
                    self._syntax.quoted, "this text does not end on its line"
                )
            case _:
                return self._match(
                    self._syntax.scalar, "there is no value where one must be"
                )

    def read_member(self, depth: int = 0) -> Part:
        """Read a key and its value."""
        key = self._match(
            self._syntax.key, "there is no name in quotes where one must be"
        )
        if self._next() != self._syntax.equals:
            raise self._error("there is no colon behind a name")
        self._at += 1
        node = self.read_value(depth + 1)
        try:
            path = self._syntax.read_key(self._text[key.start : key.end])
        except ValueError:
            raise self._error("a name has an escape that JSON does not know") from None
        return Part(path, key.start, node)

    def _next(self) -> str:
        """Pass over blanks and comments; return the next character, "" at the end."""
        self._at = trivia_end(self._text, self._at, self._syntax)
        return self._text[self._at : self._at + 1]

    def _match(self, shape: re.Pattern[str], else_it: str) -> Node:
        found = shape.match(self._text, self._at)
        if found is None:
            raise self._error(else_it)
        self._at = found.end()
        return Node(found.start(), found.end())

    def _parts(self, closing: str, depth: int) -> Node:
        start, parts = self._at, list[Part]()
        self._at += 1
        while self._next() != closing:
            if parts and parts[-1].comma < 0:
                raise self._error("a comma or a closing bracket is missing")
            if closing == "}":
                part = self.read_member(depth)
            else:
                node = self.read_value(depth + 1)
                part = Part((), node.start, node)
            if self._next() == ",":
                part = part._replace(comma=self._at)
                self._at += 1
            parts.append(part)
        self._at += 1
        if closing == "}":
            return Node(start, self._at, members=tuple(parts))
        return Node(start, self._at, items=tuple(parts))

    def _error(self, what: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"line {line}: {what}")
