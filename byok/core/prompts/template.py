"""Prompt texts with named slots and conditions.

    {{rules}}                        the value of a slot
    {{#tool:view|read}}...{{/}}      only if one of these tools is offered
    {{^agent}}...{{/}}               only if a condition does not hold

Values are inserted in a single pass and never read again, so that nothing in them can
open a slot. A line that holds only a mark, or nothing but what a condition left out,
disappears. Sections can be nested.

Mustache has the same marks. It is written here because its libraries read conditions
and values from one namespace, escape HTML, and say nothing of unknown names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

_MARK = re.compile(r"\{\{([#^/]?)([^{}\n]*)\}\}")
_NAME = re.compile(r"[a-z][a-z_]*(?::[\w.-]+(?:\|[\w.-]+)*)?")
_COMMENT = re.compile(r"\A(?:<!--.*?-->\s*)+", re.DOTALL)
_REST = re.compile(r"[^\S\n]*(?=\n|\Z)")
_DEEPEST = 8
_LONGEST = 60  # characters of a name that are told


class TemplateError(ValueError):
    """A text that is no template; `line` is counted from 1, `cure` says what to do."""

    def __init__(self, line: int, problem: str, cure: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem
        self.cure = cure


class Slot(Struct, frozen=True):
    """The place of a value; `alone` on its line, which goes with an empty value."""

    name: str
    line: int
    alone: bool


class Choice(Struct, frozen=True):
    """Parts that are used only if a condition holds, or does not."""

    condition: str
    wanted: bool
    line: int
    parts: "tuple[TemplatePart, ...]"


TemplatePart: TypeAlias = str | Slot | Choice


class Template(Struct, frozen=True):
    """A text that was parsed."""

    parts: tuple[TemplatePart, ...]

    def render(self, values: Mapping[str, str], holds: Callable[[str], bool]) -> str:
        """Return the text without blank lines around it.

        `values` are those of the slots, a missing one is empty; `holds` is asked for
        each condition, such as `agent` or `tool:view|read`.
        """
        written: list[str] = []
        breaks = 2  # how many lines ended last; of more than two, no gap would be left
        for piece in _pieces(self.parts, values, holds):
            rest = piece.lstrip("\n")
            piece = "\n" * min(len(piece) - len(rest), max(0, 2 - breaks)) + rest
            if piece:
                written.append(piece)
                ended = len(piece) - len(piece.rstrip("\n"))
                breaks = ended + (breaks if ended == len(piece) else 0)
        return "".join(written).strip()

    def has(self, slot: str) -> bool:
        """Tell whether there is a slot of this name."""
        return any(isinstance(p, Slot) and p.name == slot for p in self.walk())

    def walk(self) -> Iterator[Slot | Choice]:
        """Give each slot and section, outer ones first."""
        waiting = [*reversed(self.parts)]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Choice):
                waiting += reversed(part.parts)
            if not isinstance(part, str):
                yield part


def parse_template(text: str) -> Template:
    """Parse a text; comments (`<!-- -->`) at its beginning are left out.

    Raises:
        TemplateError: a mark is wrong, or a section is not closed.
    """
    comment = _COMMENT.match(text)
    return _Parser(text, comment.end() if comment else 0).parse()


class _Parser:
    """Reads marks from left to right; each open section collects its parts."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._at = self._start = start
        self._line = 1 + text.count("\n", 0, start)
        self._open: list[tuple[str, bool, int]] = []
        self._parts: list[list[TemplatePart]] = [[]]

    def parse(self) -> Template:
        for mark in _MARK.finditer(self._text, self._at):
            start, end, alone = self._place(mark)
            self._add_text(start)
            kind, name = mark.group(1), mark.group(2).strip()
            if kind == "/":
                self._close(name)
            else:
                self._check_name(name)
                if kind:
                    self._begin(name, wanted=kind == "#")
                else:
                    self._parts[-1].append(Slot(name, self._line, alone))
            self._at = end
            if kind and alone and self._text.startswith("\n", end):
                self._at, self._line = end + 1, self._line + 1  # its line disappears
        self._add_text(len(self._text))
        if self._open:
            name, _, line = self._open[-1]
            raise TemplateError(
                line,
                f"{name[:_LONGEST]} is not closed",
                "Add {{/}} behind its last line.",
            )
        return Template(tuple(self._parts[0]))

    def _place(self, mark: re.Match[str]) -> tuple[int, int, bool]:
        """Return where a mark begins and ends, and whether it is alone on its line.

        Blanks beside a mark that is alone belong to it. No text is read twice.
        """
        text, (start, end) = self._text, mark.span()
        begin = text.rfind("\n", self._at, start) + 1
        if not begin:  # what precedes is on the line of a mark, or its line is gone
            begin = self._at
            if begin != self._start and text[begin - 1] != "\n":
                return start, end, False
        rest = _REST.match(text, end)
        if rest is None or text[begin:start].strip():
            return start, end, False
        return begin, rest.end(), True

    def _add_text(self, end: int) -> None:
        if text := self._text[self._at : end]:
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
                f"{name[:_LONGEST]!r} is no name",
                "Names are lower case, as in {{rules}} or {{#tool:view}}. For two "
                "braces write { {.",
            )

    def _begin(self, name: str, *, wanted: bool) -> None:
        if len(self._open) == _DEEPEST:
            raise TemplateError(
                self._line, "too many sections in one another", "Join some of them."
            )
        self._open.append((name, wanted, self._line))
        self._parts.append([])

    def _close(self, name: str) -> None:
        if not self._open or (name and name != self._open[-1][0]):
            raise TemplateError(
                self._line,
                f"{{{{/{name[:_LONGEST]}}}}} closes nothing",
                "Remove it, or open its section before it.",
            )
        condition, wanted, line = self._open.pop()
        parts = self._parts.pop()
        self._parts[-1].append(Choice(condition, wanted, line, tuple(parts)))


def _pieces(
    parts: tuple[TemplatePart, ...],
    values: Mapping[str, str],
    holds: Callable[[str], bool],
) -> Iterator[str]:
    dropped_line = False
    for part in parts:
        match part:
            case Choice(condition, wanted, _, inner):
                if holds(condition) is wanted:
                    yield from _pieces(inner, values, holds)
            case Slot(name, _, alone):
                value = values.get(name, "").strip("\n")
                dropped_line = alone and not value
                yield value
                continue
            case str(text):
                yield text.removeprefix("\n") if dropped_line else text
        dropped_line = False
