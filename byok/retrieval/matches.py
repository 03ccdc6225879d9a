"""Rank files by the lines that a text search found.

A file scores by the rarity of the words it contains, times the factor of its kind.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from byok.index.files.languages import kind_of
from byok.index.store.chunk_index import ChunkScore
from byok.index.types import Kind, Span
from byok.retrieval.pack import LONGEST_LINE
from byok.retrieval.rank import RankedFile, Reasons, kind_factor

LINES_A_FILE = 40
_FILES = 100
# The share of files assumed to contain a word whose search was stopped early.
_COMMON = 0.5
_SATURATION = 1.5
_CONTEXT = 2
_USUAL_LINE = 40
_LONGEST_GROUP = 30
# Of matches inside longer words, such as `item` in `items`: of each, and of all.
_PART_WORTH, _PARTS_WORTH = 0.2, 0.6


class LineMatch(NamedTuple):
    """A matching line, cut at 400 characters; `number` counts from 0."""

    number: int
    text: str


class FileMatches(NamedTuple):
    """A file with matching lines, in order."""

    path: str
    kind: Kind
    score: float
    lines: tuple[LineMatch, ...]


@dataclass
class MatchCollector:
    """Collects matching lines while a search runs.

    Attributes:
        lines: text by path and line number, at most 40 lines a file.
        counts: number of matching lines by word and path; those where the word is only
            a part of longer ones count less.
        searched: number of files searched, as far as known.
        common: words whose search was stopped early because they match everywhere.
    """

    lines: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    counts: dict[str, dict[str, float]] = field(default_factory=dict)
    searched: int = 0
    common: set[str] = field(default_factory=set)

    def add(self, token: str, path: str, number: int, text: str) -> None:
        """Add a line that contains a word."""
        lines = self.lines[path]
        if number in lines or len(lines) < LINES_A_FILE:
            lines[number] = text[:LONGEST_LINE]
        counts = self.counts.setdefault(token, {})
        before = counts.get(path, 0.0)
        if _whole_word(token).search(text):
            counts[path] = before + 1.0
        else:
            counts[path] = max(before, min(before + _PART_WORTH, _PARTS_WORTH))


@lru_cache(maxsize=64)
def _whole_word(token: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(token)}(?!\w)", re.IGNORECASE)


def rank_by_rarity(
    found: MatchCollector, names: frozenset[Kind] = frozenset()
) -> tuple[FileMatches, ...]:
    """Rank files by the rarity of their words, times the factor of the kind."""
    total = max([found.searched, *map(len, found.counts.values())], default=0)
    scores: dict[str, float] = defaultdict(float)
    for token, counts in found.counts.items():
        files = _COMMON * total if token in found.common else len(counts)
        rarity = math.log(1 + total / max(files, 1))
        for path, count in counts.items():
            scores[path] += rarity * count / (count + _SATURATION)
    ranked = []
    for path, score in scores.items():
        kind = kind_of(path)
        lines = sorted(LineMatch(n, text) for n, text in found.lines[path].items())
        if lines:
            score *= kind_factor(kind, names)
            ranked.append(FileMatches(path, kind, score, tuple(lines)))
    ranked.sort(key=lambda file: (-file.score, file.path))
    return tuple(ranked[:_FILES])


def to_ranked(
    files: Iterable[FileMatches], prefix: str = ""
) -> tuple[list[RankedFile], dict[int, list[Span]]]:
    """Return matches as ranked files and their spans, ready for `pack`.

    Lines near each other form one chunk, whose score is the number of matches. The
    position of a file stands for its blob id.
    """
    ranked: list[RankedFile] = []
    spans: dict[int, list[Span]] = {}
    for place, file in enumerate(files):
        groups = _groups(file.lines)
        spans[place] = [span for span, _ in groups]
        chunks = [ChunkScore(place, n, worth) for n, (_, worth) in enumerate(groups)]
        chunks.sort(key=lambda chunk: (-chunk.score, chunk.ordinal))
        factor = kind_factor(file.kind)
        why = Reasons(file.score / factor, 0.0, 0.0, factor, 0.0)
        ranked.append(
            RankedFile(
                place, prefix + file.path, file.kind, file.score, tuple(chunks), why
            )
        )
    return ranked, spans


def _groups(lines: Iterable[LineMatch]) -> list[tuple[Span, int]]:
    """Join lines whose context overlaps; give each group and its number of matches."""
    found: list[tuple[Span, int]] = []
    for number, text in lines:
        first, last = max(0, number - _CONTEXT), number + _CONTEXT
        chars = len(text) + 2 * _CONTEXT * _USUAL_LINE
        before, worth = found[-1] if found else (Span(0, -_LONGEST_GROUP, 0), 0)
        if first <= before.last + 1 and last - before.first < _LONGEST_GROUP:
            found[-1] = (Span(before.first, last, before.chars + chars), worth + 1)
        else:
            found.append((Span(first, last, chars), 1))
    return found
