"""Edits of a text as the clients' tool makes them: replacements and insertions."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from byok.trials.trial_files import ToolFailed

_AROUND = 3  # lines that are shown before and behind an edit
_MOST_PLACES = 100


class TextEdit(NamedTuple):
    """A replacement of `old`; `first` to `last` are its lines from 1, 0 if not told."""

    old: str
    new: str
    first: int = 0
    last: int = 0


class EditedText(NamedTuple):
    """The text afterwards, and where the new lines are, from 1, both inclusive."""

    text: str
    places: tuple[tuple[int, int], ...]


class _Span(NamedTuple):
    start: int
    end: int
    new: str


def replace_texts(text: str, edits: Sequence[TextEdit]) -> EditedText:
    """Make replacements whose lines are those of the text before all of them.

    Raises:
        ToolFailed: a text is not there, is there several times, or two overlap.
    """
    spans = sorted(_find(text, edit) for edit in edits)
    for one, other in itertools.pairwise(spans):
        if one.end > other.start:
            raise ToolFailed("Two of the replacements overlap. Nothing was changed.")
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    at, line = 0, 1
    for span in spans:
        pieces += [text[at : span.start], span.new]
        line += text.count("\n", at, span.start)
        more = span.new.removesuffix("\n").count("\n")
        places.append((line, line + more))
        line += span.new.count("\n")
        at = span.end
    return EditedText("".join([*pieces, text[at:]]), tuple(places))


def insert_lines(text: str, line: int, new: str) -> EditedText:
    """Insert lines behind a line, which counts from 1; 0 is the beginning.

    Raises:
        ToolFailed: there is no such line.
    """
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise ToolFailed(f"There is no line {line}: the file has {len(lines)} lines.")
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    new = new if new.endswith("\n") else f"{new}\n"
    edited = "".join([*lines[:line], new, *lines[line:]])
    return EditedText(edited, ((line + 1, line + new.count("\n")),))


def _find(text: str, edit: TextEdit) -> _Span:
    """Find the place of a replacement; an empty text is found in an empty file."""
    if not edit.old:
        if text.strip():
            raise ToolFailed("The text to replace is empty, but the file is not.")
        return _Span(0, len(text), edit.new)
    starts = _places(text, edit.old)
    if not starts:
        raise ToolFailed(
            "The text to replace is not in the file. It must be exactly as in the "
            "file, with all spaces. View the file again."
        )
    if len(starts) > 1 and edit.first:
        starts = [s for s in starts if _is_within(text, s, edit)] or starts
    if len(starts) > 1:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
        raise ToolFailed(
            f"The text to replace begins in several lines: {lines}. Give more lines of "
            "it, or the numbers of its lines."
        )
    return _Span(starts[0], starts[0] + len(edit.old), edit.new)


def _places(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < _MOST_PLACES:
        found.append(at)
        at = text.find(old, at + len(old))
    return found


def _is_within(text: str, start: int, edit: TextEdit) -> bool:
    line = text.count("\n", 0, start) + 1
    return edit.first <= line <= max(edit.first, edit.last)


def show_lines(text: str, first: int, last: int, around: int = _AROUND) -> str:
    """Return lines with their numbers, as `cat -n` writes them."""
    lines = text.splitlines()
    start, end = max(1, first - around), min(len(lines), last + around)
    return "".join(f"{n:6}\t{lines[n - 1]}\n" for n in range(start, end + 1))
