"""Cuts a file into chunks at its definitions.

Sizes are those measured with the ranking (docs/RETRIEVAL.md): chunks of about 1,600
characters; neighbours under 300 are joined, runs over 2,080 are split.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from byok.index.types import Span

if TYPE_CHECKING:  # it loads the parser, which only parser processes may
    from byok.index.parse.definitions import Definition

_TARGET = 1600
_LONGEST = 2080
_SHORTEST = 300
_FEW_LINES = 8
_MARGIN = 4  # lines at either end of a run where it is not split
# A line above a definition that belongs to it: comments, decorators, attributes.
_LEADS = re.compile(
    r"\s*(?://|/\*|\*|--|;|%|\(\*|\{-|@\w|\[\w|"
    r"#(?!\s*(?:include|define|if|ifdef|ifndef|elif|else|endif|pragma|undef)\b))"
)
# How comments and docstrings of several lines end and begin.
_BLOCKS = {
    "*/": re.compile(r"/\*"),
    "*)": re.compile(r"\(\*"),
    "-}": re.compile(r"\{-"),
    "#>": re.compile(r"<#"),
    '"""': re.compile(r'"""\s*\S|\S\s*"""'),
}
_DECORATED = "decorated_definition"
_HEADING = re.compile(r"#{1,6}(?:\s|$)")
_FENCE = re.compile(r"\s*(?:```|~~~)")


def cut(
    lines: Sequence[str], definitions: Sequence["Definition"], *, prose: bool
) -> list[Span]:
    """Return spans that cover every line once, in order; linear in the text.

    `definitions` are sorted. Without any, the text is cut at blank lines, and `prose`
    at its headings too.
    """
    if not lines:
        return []
    if definitions:
        points = _points_of_code(lines, definitions)
    else:
        points = _points_of_text(lines, prose=prose)
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    runs = _runs(points, len(lines))
    return list(_join_short(_split(runs, lines, offsets), offsets))


def _points_of_code(
    lines: Sequence[str], definitions: Sequence["Definition"]
) -> list[int]:
    points = {0}
    previous = decorated = -1
    for definition in definitions:
        first = min(definition.first_line, len(lines) - 1)
        if definition.kind == _DECORATED:
            decorated = definition.last_line
        elif definition.last_line == decorated:
            continue  # cut where its decorators begin
        if first > previous:
            points.add(_first_line_of(lines, first, previous))
            previous = first
        if definition.last_line > first:
            points.add(definition.last_line + 1)
    return sorted(points)


def _first_line_of(lines: Sequence[str], first: int, previous: int) -> int:
    """Return the line where what belongs to the definition at `first` begins.

    It lies behind `previous`, so no line is looked at for two definitions.
    """
    at = first
    searching = True
    while at - 1 > previous:
        opener = _opener(lines[at - 1]) if searching else None
        start = None
        if opener is not None:
            above = range(at - 1, previous, -1)
            start = next((n for n in above if opener.search(lines[n])), None)
            searching = start is not None
        if start is not None and _indent(lines[start]) == _indent(lines[first]):
            at = start
        elif _LEADS.match(lines[at - 1]):
            at -= 1
        else:
            return at
    return at


def _opener(line: str) -> re.Pattern[str] | None:
    """Return what the comment begins with that ends with this line."""
    text = line.rstrip()
    return next((start for end, start in _BLOCKS.items() if text.endswith(end)), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _points_of_text(lines: Sequence[str], *, prose: bool) -> list[int]:
    points = [0]
    blank = fenced = False
    for number, line in enumerate(lines):
        if prose and _FENCE.match(line):
            fenced = not fenced
        if not line or line.isspace():
            blank = True
            continue
        if blank or (prose and not fenced and _HEADING.match(line)):
            points.append(number)
        blank = False
    return points


def _runs(points: Sequence[int], end: int) -> Iterator[tuple[int, int]]:
    """Pair the points to runs of lines, the second number exclusive."""
    first = 0
    for point in points:
        if first < point < end:
            yield first, point
            first = point
    yield first, end


def _split(
    runs: Iterable[tuple[int, int]], lines: Sequence[str], offsets: Sequence[int]
) -> Iterator[tuple[int, int]]:
    for first, end in runs:
        while offsets[end] - offsets[first] > _LONGEST and end - first > _FEW_LINES:
            middle = _middle(first, end, lines, offsets)
            yield first, middle
            first = middle
        yield first, end


def _middle(first: int, end: int, lines: Sequence[str], offsets: Sequence[int]) -> int:
    """Return where a long run is split: behind the last blank line that fits."""
    lowest = first + _MARGIN
    fits = bisect_right(offsets, offsets[first] + _TARGET, first, end) - 1
    highest = max(lowest, min(fits, end - _MARGIN))
    for line in range(highest, lowest, -1):
        if not lines[line - 1].strip():
            return line
    return highest


def _join_short(
    runs: Iterable[tuple[int, int]], offsets: Sequence[int]
) -> Iterator[Span]:
    """Join a run to the one before if one of them is short and both fit a chunk."""
    start, stop = next(iter(runs := iter(runs)))
    for first, end in runs:
        before = offsets[stop] - offsets[start]
        chars = offsets[end] - offsets[first]
        if before + chars > _TARGET or min(before, chars) >= _SHORTEST:
            yield Span(start, stop - 1, before)
            start = first
        stop = end
    yield Span(start, stop - 1, offsets[stop] - offsets[start])
