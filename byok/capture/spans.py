"""Where secrets and long base64 stand in a text, also one that came in fragments.

A model streams a text in events of a few letters each. So the strings of the same field
are also read as one text, and what is found there is traced back to the fragments.

Texts are searched in windows that overlap: one search of a large text would keep every
other thread waiting, the event loop too.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from byok.capture.json_strings import find_strings
from byok.redact import MARK

LONGEST_BASE64 = 1024  # characters; what is longer is a picture or a file
_WINDOW, _OVERLAP = 64 * 1024, 16 * 1024
# From the begin of a run only: long words would take the square of their length.
_BASE64 = re.compile(rf"(?<![A-Za-z0-9+/_\-])[A-Za-z0-9+/_\-]{{{LONGEST_BASE64},}}=*")

FindSecrets = Callable[[str], Iterable[tuple[int, int]]]


class HiddenSpan(NamedTuple):
    """A part of a text that is replaced by `shown`."""

    start: int
    end: int
    shown: str


def find_spans(text: str, secrets: FindSecrets, *, fragments: bool) -> list[HiddenSpan]:
    """Return what has to be replaced, in order and apart from each other.

    With `fragments` the text is a stream of events or lines of JSON.
    """
    found = [*_windows(text, secrets)]
    if fragments:
        found += _in_fields(text, secrets)
    long = [HiddenSpan(*place, "") for place in _windows(text, _find_base64)]
    return _merge([HiddenSpan(*place, MARK) for place in found], long)


def _windows(text: str, find: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield places in the whole text; what a window cuts is looked at again."""
    start = 0
    while True:
        end = min(len(text), start + _WINDOW)
        places = [(start + a, start + b) for a, b in find(text[start:end])]
        yield from places
        if end == len(text):
            return
        # What reaches the end may go on; it is searched again from its beginning.
        cut = [begin for begin, stop in places if stop == end and begin > start]
        start = max(start + _OVERLAP, min([end - _OVERLAP, *cut]))


def _in_fields(text: str, secrets: FindSecrets) -> Iterator[tuple[int, int]]:
    """Yield the places of secrets that are spread over strings of the same field."""
    fields: defaultdict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for string in find_strings(text):
        if not string.is_key and string.end > string.start:
            fields[string.path].append((string.start, string.end))
    for places in fields.values():
        if len(places) > 1:
            joined = "".join(text[start:end] for start, end in places)
            yield from _trace(places, sorted(_windows(joined, secrets)))


def _trace(
    places: list[tuple[int, int]], found: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Translate places in the joined text to places in the whole one."""
    at, number = 0, 0
    for start, end in _join(found):
        while number < len(places) and at + _size(places[number]) <= start:
            at += _size(places[number])
            number += 1
        here, seek = at, number
        while seek < len(places) and here < end:
            begin, size = places[seek][0], _size(places[seek])
            yield begin + max(0, start - here), begin + min(size, end - here)
            here += size
            seek += 1


def _size(place: tuple[int, int]) -> int:
    return place[1] - place[0]


def _join(found: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join places that touch; they are sorted."""
    joined: list[tuple[int, int]] = []
    for start, end in found:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def _find_base64(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _BASE64.finditer(text)]


def _merge(secrets: list[HiddenSpan], long: list[HiddenSpan]) -> list[HiddenSpan]:
    """Put both kinds together; a secret within base64 ends with it."""
    all_of_them = _join(sorted((span.start, span.end) for span in (*secrets, *long)))
    large = _join(sorted((span.start, span.end) for span in long))
    starts = dict(large)
    return [
        HiddenSpan(
            start, end, MARK if starts.get(start) != end else _count(end - start)
        )
        for start, end in all_of_them
    ]


def _count(size: int) -> str:
    return f"[base64 of {size} characters]"
