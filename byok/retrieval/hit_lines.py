"""The lines of a hit that a person is shown: those that match, and what is around."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from byok.index.parse.tokens import COMPOUND, terms
from byok.index.types import Span
from byok.retrieval.current_files import CurrentFiles
from byok.retrieval.excerpts import find_terms, show_lines
from byok.retrieval.query import Query
from byok.retrieval.rank import RankedFile

_AROUND = 1
_CHUNKS = 3  # of a file


def lines_of_hits(
    files: Iterable[RankedFile], current: CurrentFiles, query: Query, most: int
) -> list[list[dict[str, Any]]]:
    """Return lines for each file, from its best chunks; blocks while it reads files.

    A line is `{"number": 1, "text": "...", "match": True}`; there are at most `most` of
    a chunk, long ones cut, in order. Of a file whose text is no longer
    there are none.
    """
    return [[*_lines_of(file, current, query, most)] for file in files]


def _lines_of(
    file: RankedFile, current: CurrentFiles, query: Query, most: int
) -> Iterator[dict[str, Any]]:
    lines, spans = current.lines_of(file.blob_id), current.spans_of(file.blob_id)
    if lines is None:
        return
    best = [chunk.ordinal for chunk in file.chunks[:_CHUNKS]] or [0]
    for ordinal in sorted(n for n in best if n < len(spans)):
        yield from _lines_in(lines, spans[ordinal], file.path, query.terms, most)


def _lines_in(
    lines: Sequence[str],
    span: Span,
    path: str,
    wanted: Mapping[str, float],
    most: int,
) -> Iterator[dict[str, Any]]:
    find = find_terms(wanted)
    texts = show_lines(lines, span.first, span.last, find, path=path)
    scores = [_score(text, wanted) for text in texts]
    for place in _choose(scores, most):
        yield {
            "number": span.first + place + 1,
            "text": texts[place],
            "match": scores[place] > 0,
        }


def _score(line: str, wanted: Mapping[str, float]) -> float:
    """Return the weights of the words that a line has of those that are wanted."""
    return sum(wanted.get(term, 0.0) for term in {*terms(line)})


def _choose(scores: Sequence[float], most: int) -> list[int]:
    """Return which lines are shown: the best ones and their neighbours, in order."""
    matching = [place for place, score in enumerate(scores) if score]
    if not matching:
        return [*range(min(len(scores), most))]
    shown: set[int] = set()
    for place in sorted(matching, key=lambda place: (-scores[place], place)):
        for near in (place, *range(place - _AROUND, place + _AROUND + 1)):
            if len(shown) < most and 0 <= near < len(scores):
                shown.add(near)
    return sorted(shown)


def describe_terms(query: Query) -> list[dict[str, Any]]:
    """Return the words that are searched for, with the weight of each.

    `whole` is an identifier as a whole; the others are stems of words.
    """
    return [
        {
            "term": term.removeprefix(COMPOUND),
            "whole": term.startswith(COMPOUND),
            "weight": round(weight, 3),
        }
        for term, weight in query.terms.items()
    ]
