"""Find the terms of a table in a text that has no spaces between its words."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

# A covered character is worth more than any number of terms less.
_CHARACTER = 1 << 12
LONGEST_RUN = 400


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

    Terms have at least `shortest` characters. A term of one character counts only
    between other terms: beside unknown characters it is likely a part of another word.
    Of a text only the first thousand characters are read.
    """
    text = text[:LONGEST_RUN]
    taken = _cover(text, entries, longest, shortest)
    place = 0
    known = True
    while place < len(text):
        size = taken[place]
        after = place + size
        between = known and (after == len(text) or taken[after] > 0)
        if size > 1 or (size == 1 and (between or not entries[text[place]])):
            term = text[place:after]
            yield Segment(place, after, entries[term], _parts(term, entries, shortest))
        known = size > 0
        place += size or 1


def _cover(
    text: str, entries: Mapping[str, str], longest: int, shortest: int
) -> list[int]:
    """Return the length of the term that starts at each character, 0 for none."""
    end = len(text)
    worth = [0] * (end + 1)
    taken = [0] * (end + 1)
    for start in range(end - 1, -1, -1):
        best, length = worth[start + 1], 0
        for size in range(shortest, min(longest, end - start) + 1):
            if text[start : start + size] in entries:
                value = worth[start + size] + size * _CHARACTER - 1
                if value >= best:
                    best, length = value, size
        worth[start], taken[start] = best, length
    return taken


def _parts(term: str, entries: Mapping[str, str], shortest: int) -> tuple[str, ...]:
    if " " not in entries[term]:
        return ()
    inner = segment(term, entries, len(term) - 1, shortest)
    return tuple(part.english for part in inner)
