"""Lines, offsets and line ends of a file, whatever its line ends are.

Offsets count code points, as Python does. CRLF, a lone CR and LF each end a line, as in
editors; U+2028 and similar characters do not.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

_BREAK = re.compile(r"\r\n|\r|\n")
_LINE_REST = re.compile(r"[^\r\n]*")
_CONTEXT = 2000  # characters around a place
_MOST_PLACES = 2000
INSERTION = "PURE INSERTION AFTER LINE:"


class Region(Struct, frozen=True):
    """The lines to replace (from 1, both inclusive) and the text that stands there.

    `old` is empty for an insertion before line `start`. If it begins or ends inside a
    line, the rest of that line stays: `head` before it, `tail` behind it.
    """

    start: int
    end: int
    old: str
    shown: str  # the old text of the lines, as clients want it
    head: str = ""
    tail: str = ""


def normal(text: str) -> str:
    """Return the text with LF line ends."""
    return _BREAK.sub("\n", text)


def line_ending(*texts: str) -> str:
    """Return the common line end of all texts; "" if there are several, or none."""
    found = {match[0] for match in _BREAK.finditer("".join(texts))}
    return found.pop() if len(found) == 1 else ""


def lines(text: str) -> list[str]:
    """Split a text into lines with their line ends."""
    ends = [match.end() for match in _BREAK.finditer(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def line_at(text: str, offset: int) -> int:
    """Return the number (from 1) of the line that contains an offset."""
    return 1 + sum(match.end() <= offset for match in _BREAK.finditer(text))


def region(file: str, begin: int, old: str) -> Region:
    """Return the region of `old`, which begins at an offset of the file."""
    start = line_at(file, begin)
    ends = (match.end() for match in _BREAK.finditer(file))
    head = file[max((end for end in ends if end <= begin), default=0) : begin]
    if not old and not head.strip():
        whole = lines(file)
        before = whole[start - 2] if start > 1 else ""
        return Region(start, start, "", INSERTION + before.rstrip())
    rest = None
    if not old.endswith(("\r", "\n")):
        rest = _LINE_REST.match(file, begin + len(old))
    tail = rest[0] if rest else ""
    end = line_at(file, begin + len(old.rstrip("\r\n")))
    return Region(start, max(start, end), old, f"{head}{old}{tail}", head, tail)


def find(file: str, wanted: str, prefix: str = "", suffix: str = "") -> int | None:
    """Return the offset of a text in a file, regardless of line ends.

    If it occurs several times, the occurrence with the best matching context counts.
    """
    if not wanted:
        return None
    text, sought = normal(file), normal(wanted)
    before, after = normal(prefix)[-_CONTEXT:], normal(suffix)[:_CONTEXT]
    best, best_place = -1, -1
    place, tried = text.find(sought), 0
    while place >= 0 and tried < _MOST_PLACES:
        end = place + len(sought)
        agreement = _common(text[max(0, place - _CONTEXT) : place][::-1], before[::-1])
        agreement += _common(text[end : end + _CONTEXT], after)
        if agreement > best:
            best, best_place = agreement, place
        place, tried = text.find(sought, place + 1), tried + 1
    return original(file, best_place) if best >= 0 else None


def original(file: str, offset: int) -> int:
    """Convert an offset in the normal text to one in the file."""
    for match in re.finditer("\r\n", file):
        if match.start() >= offset:
            break
        offset += 1
    return offset


def _common(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((n for n in range(length) if one[n] != other[n]), length)


# Convert a model's text to the line ends of the file that it is inserted into.


class Endings:
    """Stage[str, str] that ends every line with `ending`; "" changes nothing.

    `last` tells whether the text ends with a line end too; None keeps what the model
    wrote.
    """

    def __init__(self, ending: str, last: bool | None) -> None:
        self._ending = ending
        self._last = last
        self._held = ""  # line breaks that may be the end of the text
        self._said = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but a line break at the end."""
        text, self._held = self._held + text, ""
        if text.endswith("\r\n"):
            cut = len(text) - 2
        else:
            cut = len(text) - text.endswith(("\r", "\n"))
        text, self._held = text[:cut], text[cut:]
        if text:
            self._said = True
            yield self._convert(text)

    def flush(self) -> Iterator[str]:
        """Return the end of the last line."""
        held = self._convert(self._held)
        if self._last and not held and self._said:
            yield self._ending or "\n"
        elif held and self._last is not False:
            yield held

    def _convert(self, text: str) -> str:
        return _BREAK.sub(self._ending, text) if self._ending else text


class Trimmed:
    """Stage[str, str] that removes white space around the text."""

    def __init__(self) -> None:
        self._said = False
        self._held: list[str] = []

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but white space at the ends."""
        if not self._said:
            text = text.lstrip()
        bare = text.rstrip()
        if bare:
            self._said = True
            yield "".join((*self._held, bare))
            self._held.clear()
        if self._said and len(bare) < len(text):
            self._held.append(text[len(bare) :])

    def flush(self) -> Iterator[str]:
        """Drop white space at the end."""
        self._held.clear()
        return iter(())
