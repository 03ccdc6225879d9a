"""Objects and lists in brackets, as in JSON with comments and TOML: nodes and edits.

A reader returns nodes with their offsets in the text; an edit is a span of the text
with its replacement. So all other bytes stay as they are.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from byok.clients.settings_text import MAX_DEPTH, SettingPath

UNIT = "    "  # the indentation of a file that has none; VS Code's default
_BLANKS = " \t\r"


class Syntax(NamedTuple):
    """The syntax of a format; `trivia` matches blanks and comments.

    `read_key` returns the path that a key stands for; `remarks` matches comments at the
    end of a line.
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
        """The members or items between the brackets."""
        return self.members or self.items or ()


class Part(NamedTuple):
    """A member of an object, or an item of a list, whose key is empty.

    `comma` is the offset of the comma behind it, -1 if there is none.
    """

    key: SettingPath
    start: int
    node: Node
    comma: int = -1


class ValuePlace(NamedTuple):
    """How far a path leads: the last object on it, and the object's part on the path.

    `remaining` are the names of the path behind the part; `part` is None if the first
    of them is not in the object.
    """

    owner: Node
    part: Part | None
    remaining: SettingPath

    @property
    def node(self) -> Node | None:
        """The value at the path, if there is one."""
        return self.part.node if self.part and not self.remaining else None


class Edit(NamedTuple):
    """A span of a text, and its replacement."""

    start: int
    end: int
    text: str


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return the text with all edits; those at the same offset stay in their order."""
    offset, pieces = 0, list[str]()
    for start, end, new in sorted(edits, key=lambda edit: edit.start):
        pieces += [text[offset:start], new]
        offset = end
    return "".join([*pieces, text[offset:]])


def locate_path(root: Node, path: SettingPath) -> ValuePlace:
    """Follow a path through objects as far as it exists.

    Raises:
        ValueError: an object on the path has a name twice.
    """
    place = ValuePlace(root, Part((), root.start, root), path)
    while place.part and place.remaining and place.part.node.members is not None:
        owner, names = place.part.node, place.remaining
        matches = [part for part in owner.parts if names[: len(part.key)] == part.key]
        if len(matches) > 1:
            raise ValueError(f'"{matches[0].key[-1]}" stands there twice')
        place = ValuePlace(owner, None, names)
        if matches:
            place = ValuePlace(owner, matches[0], names[len(matches[0].key) :])
    return place


def append_part(
    text: str, node: Node, new: str, syntax: Syntax, *, indent: str | None
) -> list[Edit]:
    """Append a part to an object or list; without `indent`, all on one line."""
    if not node.parts:
        return [_append_first(text, node, new, indent)]
    last = node.parts[-1]
    part_end = last.comma + 1 if last.comma >= 0 else last.node.end
    end = trivia_end(text, part_end, syntax)
    comma = "," if last.comma >= 0 else ""
    edits = [] if last.comma >= 0 else [Edit(last.node.end, last.node.end, ",")]
    if indent is None or "\n" not in text[node.start : end]:
        return [*edits, Edit(part_end, part_end, f" {new}{comma}")]
    offset = part_end
    while match := syntax.remarks.match(text, offset, end):
        offset = match.end()
    offset = part_end + len(text[part_end:offset].rstrip(_BLANKS))
    return [*edits, Edit(offset, offset, f"\n{indent}{new}{comma}")]


def _append_first(text: str, node: Node, new: str, indent: str | None) -> Edit:
    """Insert the first part of an object or list, behind its comments."""
    end = node.end - 1
    if indent is None:
        return Edit(node.start + 1, end, new)
    offset = node.start + 1 + len(text[node.start + 1 : end].rstrip(_BLANKS + "\n"))
    newline = "" if "\n" in text[offset:end] else f"\n{_line_indent(text, node.start)}"
    return Edit(offset, offset, f"\n{indent}{new}{newline}")


def cut_part(text: str, owner: Node, part: Part) -> list[Edit]:
    """Remove a part, with its line if nothing else is on it."""
    start, index = part.start, owner.parts.index(part)
    end = part.comma + 1 if part.comma >= 0 else part.node.end
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    before = text[line_start:start]
    behind = text[end : None if line_end < 0 else line_end]
    if line_end >= 0 and not (before.strip(_BLANKS) or behind.strip(_BLANKS)):
        start, end = line_start, line_end + 1
    elif part.comma >= 0:
        end += len(behind) - len(behind.lstrip(" \t"))
    else:
        start -= len(before) - len(before.rstrip(" \t"))
    edits = [Edit(start, end, "")]
    if part.comma < 0 and index:  # remove the comma before the last part
        comma = owner.parts[index - 1].comma
        edits.append(Edit(comma, comma + 1, ""))
    return edits


def part_indent(text: str, node: Node, unit: str = UNIT) -> str:
    """Return the indentation of the first part that has a line of its own."""
    for part in node.parts:
        indent = own_indent(text, part.start)
        if indent is not None:
            return indent
    return _line_indent(text, node.start) + unit


def own_indent(text: str, start: int) -> str | None:
    """Return the blanks before an offset; None if its line has other text before it."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return before if "\n" in text[:start] and not before.strip(_BLANKS) else None


def _line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def trivia_end(text: str, offset: int, syntax: Syntax) -> int:
    """Return the end of the blanks and comments that start at an offset."""
    match = syntax.trivia.match(text, offset)
    return match.end() if match else offset


class BracketReader:
    """Parses values of a text from an offset on.

    Raises:
        ValueError: the text is invalid; the message has the line.
    """

    def __init__(self, text: str, syntax: Syntax, offset: int = 0) -> None:
        self._text = text
        self._syntax = syntax
        self._offset = offset

    def read_document(self) -> Node | None:
        """Return the value of the whole text; None if it has only comments."""
        if not self._next():
            return None
        node = self.read_value()
        if self._next():
            raise self._error("there is something behind the value")
        return node

    def read_value(self, depth: int = 0) -> Node:
        """Read a value, including nested ones."""
        if depth > MAX_DEPTH:
            raise self._error("it is nested too deeply")
        match self._next():
            case "{":
                return self._read_parts("}", depth)
            case "[":
                return self._read_parts("]", depth)
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
        self._offset += 1
        node = self.read_value(depth + 1)
        try:
            path = self._syntax.read_key(self._text[key.start : key.end])
        except ValueError:
            raise self._error("a name has an escape that JSON does not know") from None
        return Part(path, key.start, node)

    def _next(self) -> str:
        """Skip blanks and comments; return the next character, "" at the end."""
        self._offset = trivia_end(self._text, self._offset, self._syntax)
        return self._text[self._offset : self._offset + 1]

    def _match(self, pattern: re.Pattern[str], problem: str) -> Node:
        match = pattern.match(self._text, self._offset)
        if match is None:
            raise self._error(problem)
        self._offset = match.end()
        return Node(match.start(), match.end())

    def _read_parts(self, closing: str, depth: int) -> Node:
        start, parts = self._offset, list[Part]()
        self._offset += 1
        while self._next() != closing:
            if parts and parts[-1].comma < 0:
                raise self._error("a comma or a closing bracket is missing")
            if closing == "}":
                part = self.read_member(depth)
            else:
                node = self.read_value(depth + 1)
                part = Part((), node.start, node)
            if self._next() == ",":
                part = part._replace(comma=self._offset)
                self._offset += 1
            parts.append(part)
        self._offset += 1
        if closing == "}":
            return Node(start, self._offset, members=tuple(parts))
        return Node(start, self._offset, items=tuple(parts))

    def _error(self, problem: str) -> ValueError:
        line = self._text.count("\n", 0, self._offset) + 1
        return ValueError(f"line {line}: {problem}")
