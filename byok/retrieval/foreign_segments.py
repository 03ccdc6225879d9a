"""Find the terms of a table in a text that has no spaces between its words."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

# A covered character is worth more than any number of terms less.
_CHARACTER = 1 << 12
LONGEST_RUN = 1000


class Segment(NamedTuple):
    """A term at `start` to `end` of a text.

    Attributes:
        english: its English words; "" for a word that says nothing.
        parts: the English words of the terms that it consists of.
    """

    start: int
    end: int
    english: str
    parts: tuple[str, ...] = ()


def segment(
    text: str, entries: Mapping[str, str], longest: int, shortest: int = 1
) -> Iterator[Segment]:
    """Yield the terms that cover most of a text, in order; of equals, the fewest terms.

    Terms have at least `shortest` characters. Of a text only the first thousand
    characters are read.
    """
    text = text[:LONGEST_RUN]
    end = len(text)
    worth = [0] * (end + 1)
    taken = [0] * (end + 1)  # length of the term that starts here, 0 for none
    for start in range(end - 1, -1, -1):
        best, length = worth[start + 1], 0
        for size in range(shortest, min(longest, end - start) + 1):
            if text[start : start + size] in entries:
                value = worth[start + size] + size * _CHARACTER - 1
                if value >= best:
                    best, length = value, size
        worth[start], taken[start] = best, length
    place = 0
    while place < end:
        size = taken[place]
        if size:
            term = text[place : place + size]
            parts = _parts(term, entries, shortest)
            yield Segment(place, place + size, entries[term], parts)
        place += size or 1


def _parts(term: str, entries: Mapping[str, str], shortest: int) -> tuple[str, ...]:
    if len(term) <= 2 * shortest:
        return ()
    inner = segment(term, entries, len(term) - 1, shortest)
    return tuple(part.english for part in inner)
