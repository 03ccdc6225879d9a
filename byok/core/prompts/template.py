"""Prompt texts with named slots and conditions.

    {{rules}}                        the value of a slot
    {{#tool:view|read}}...{{/}}      only if one of these tools is offered
    {{^agent}}...{{/}}               only if a condition does not hold

Values are inserted in a single pass and never parsed, so that nothing in them can open
a slot. A line that holds only a mark, or only a section that is left out, disappears.
Sections can be nested.

The marks are those of Mustache. No library of it is used because they read conditions
and values from one namespace, escape HTML, and ignore unknown names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

_MARK = re.compile(r"\{\{([#^/]?)([^{}\n]*)\}\}")
_NAME = re.compile(r"[a-z][a-z_]*(?::[\w.-]+(?:\|[\w.-]+)*)?")
_COMMENT = re.compile(r"\A(?:<!--.*?-->\s*)+", re.DOTALL)
_LINE_END = re.compile(r"[^\S\n]*(?=\n|\Z)")
_MAX_DEPTH = 8
_MAX_NAME_CHARS = 60  # of a name in a message


class TemplateError(ValueError):
    """The text is no valid template; `line` counts from 1, `cure` says what to do."""

    def __init__(self, line: int, problem: str, cure: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
        self.cure = cure


class Slot(Struct, frozen=True):
    """The place of a value; if `alone` on its line, an empty value removes the line."""

    name: str
    line: int
    alone: bool


class Choice(Struct, frozen=True):
    """A section: parts that are used only if a condition holds, or does not hold."""

    condition: str
    must_hold: bool
    line: int
    parts: "tuple[TemplatePart, ...]"


TemplatePart: TypeAlias = str | Slot | Choice


class Template(Struct, frozen=True):
    """A parsed text."""

    parts: tuple[TemplatePart, ...]

    def render(self, values: Mapping[str, str], holds: Callable[[str], bool]) -> str:
        """Return the text, without blank lines at its ends.

        `values` are those of the slots, "" for a missing one; `holds` is called with
        each condition, such as `agent` or `tool:view|read`.
        """
        pieces: list[str] = []
        breaks = 2  # line ends at the end of the text so far; there are never more
        for piece in _pieces(self.parts, values, holds):
            text = piece.lstrip("\n")
            piece = "\n" * min(len(piece) - len(text), max(0, 2 - breaks)) + text
            if piece:
                pieces.append(piece)
                ended = len(piece) - len(piece.rstrip("\n"))
                breaks = ended + (breaks if ended == len(piece) else 0)
        return "".join(pieces).strip()

    def has(self, slot: str) -> bool:
        """Tell whether there is a slot of this name."""
        return any(isinstance(p, Slot) and p.name == slot for p in self.walk())

    def walk(self) -> Iterator[Slot | Choice]:
        """Yield each slot and section, outer ones first."""
        stack = [*reversed(self.parts)]
        while stack:
            part = stack.pop()
            if isinstance(part, Choice):
                stack += reversed(part.parts)
            if not isinstance(part, str):
                yield part


def parse_template(text: str) -> Template:
    """Parse a text; comments (`<!-- -->`) at its beginning are skipped.

    Raises:
        TemplateError: a mark is wrong, or a section is not closed.
    """
    comment = _COMMENT.match(text)
    return _Parser(text, comment.end() if comment else 0).parse()


class _Parser:
    """Reads marks from left to right; each open section collects its parts."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._position = self._start = start
        self._line = 1 + text.count("\n", 0, start)
        self._open: list[tuple[str, bool, int]] = []
        self._parts: list[list[TemplatePart]] = [[]]

    def parse(self) -> Template:
        for mark in _MARK.finditer(self._text, self._position):
            start, end, alone = self._extent_of(mark)
            self._add_text(start)
            kind, name = mark.group(1), mark.group(2).strip()
            if kind == "/":
                self._close_section(name)
            else:
                self._check_name(name)
                if kind:
                    self._open_section(name, must_hold=kind == "#")
                else:
                    self._parts[-1].append(Slot(name, self._line, alone))
            self._position = end
            if kind and alone and self._text.startswith("\n", end):
                self._position += 1  # the line of the mark disappears
                self._line += 1
        self._add_text(len(self._text))
        if self._open:
            name, _, line = self._open[-1]
            raise TemplateError(
                line,
                f"{name[:_MAX_NAME_CHARS]} is not closed",
                "Add {{/}} behind its last line.",
            )
        return Template(tuple(self._parts[0]))

    def _extent_of(self, mark: re.Match[str]) -> tuple[int, int, bool]:
        """Return the begin and end of a mark, and whether it is alone on its line.

        Blanks beside a mark that is alone belong to it. No text is scanned twice.
        """
        text, (start, end) = self._text, mark.span()
        begin = text.rfind("\n", self._position, start) + 1
        if not begin:  # the line begins at, or before, the end of the previous mark
            begin = self._position
            if begin != self._start and text[begin - 1] != "\n":
                return start, end, False
        line_end = _LINE_END.match(text, end)
        if line_end is None or text[begin:start].strip():
            return start, end, False
        return begin, line_end.end(), True

    def _add_text(self, end: int) -> None:
        if text := self._text[self._position : end]:
            if "{{" in text:
                line = self._line + text.count("\n", 0, text.index("{{"))
                raise TemplateError(
                    line,
                    "{{ is not closed",
                    "Close the mark with }} on its line. For two braces write { {.",
                )
            self._parts[-1].append(text)
            self._line += text.count("\n")

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise TemplateError(
                self._line,
                f"{name[:_MAX_NAME_CHARS]!r} is no name",
                "Names are lower case, as in {{rules}} or {{#tool:view}}. For two "
                "braces write { {.",
            )

    def _open_section(self, name: str, *, must_hold: bool) -> None:
        if len(self._open) == _MAX_DEPTH:
            raise TemplateError(
                self._line, "too many sections in one another", "Join some of them."
            )
        self._open.append((name, must_hold, self._line))
        self._parts.append([])

    def _close_section(self, name: str) -> None:
        if not self._open or (name and name != self._open[-1][0]):
            raise TemplateError(
                self._line,
                f"{{{{/{name[:_MAX_NAME_CHARS]}}}}} closes nothing",
                "Remove it, or open its section before it.",
            )
        condition, must_hold, line = self._open.pop()
        parts = self._parts.pop()
        self._parts[-1].append(Choice(condition, must_hold, line, tuple(parts)))


def _pieces(
    parts: tuple[TemplatePart, ...],
    values: Mapping[str, str],
    holds: Callable[[str], bool],
) -> Iterator[str]:
    dropped_line = False
    for part in parts:
        match part:
            case Choice(condition, must_hold, _, inner):
                if holds(condition) is must_hold:
                    yield from _pieces(inner, values, holds)
            case Slot(name, _, alone):
                value = values.get(name, "").strip("\n")
                dropped_line = alone and not value
                yield value
                continue
            case str(text):
                yield text.removeprefix("\n") if dropped_line else text
        dropped_line = False
