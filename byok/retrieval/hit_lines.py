"""The lines of a hit that a person is shown: those that match, and what is around."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from byok.index.contents import Contents, Entry
from byok.index.parse.tokens import COMPOUND, terms
from byok.index.types import Span
from byok.retrieval.masking import mask_lines
from byok.retrieval.pack import LONGEST_LINE
from byok.retrieval.query import Query
from byok.retrieval.rank import RankedFile

_AROUND = 1
_CHUNKS = 3  # of a file


def lines_of_hits(
    files: Iterable[RankedFile],
    entries: Mapping[int, Entry],
    contents: Contents,
    query: Query,
    most: int,
) -> list[list[dict[str, Any]]]:
    """Return lines for each file, from its best chunks; blocks while it reads files.

    A line is `{"number": 1, "text": "...", "match": True}`; there are at most `most` of
    a chunk, each cut at 400 characters, in order. Of a file whose text is no longer
    there are none.
    """
    return [[*_lines_of(file, entries, contents, query, most)] for file in files]


def _lines_of(
    file: RankedFile,
    entries: Mapping[int, Entry],
    contents: Contents,
    query: Query,
    most: int,
) -> Iterator[dict[str, Any]]:
    entry = entries[file.blob_id]
    lines = contents.lines_of(entry)
    if lines is None:
        return
    best = [chunk.ordinal for chunk in file.chunks[:_CHUNKS]] or [0]
    for ordinal in sorted(n for n in best if n < len(entry.spans)):
        yield from _lines_in(lines, entry.spans[ordinal], entry.path, query.terms, most)


def _lines_in(
    lines: Sequence[str], span: Span, path: str, wanted: Collection[str], most: int
) -> Iterator[dict[str, Any]]:
    texts = mask_lines(lines, span.first, span.last, path=path)
    matching = {
        n for n, text in enumerate(texts) if any(t in wanted for t in terms(text))
    }
    shown: dict[int, None] = {}
    for place in sorted(matching):
        near = range(max(0, place - _AROUND), min(len(texts), place + _AROUND + 1))
        shown |= dict.fromkeys(near)
    for place in [*(shown or range(len(texts)))][:most]:
        yield {
            "number": span.first + place + 1,
            "text": texts[place][:LONGEST_LINE],
            "match": place in matching,
        }


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
