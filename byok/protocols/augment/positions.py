"""Lines and offsets in a file with any line endings, and texts that are put into it.

Offsets count code points, as Python does. CRLF, a lone CR and LF each end a line, as in
editors; U+2028 and similar characters do not.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

_BREAK = re.compile(r"\r\n|\r|\n")
_TO_LINE_END = re.compile(r"[^\r\n]*")
_CONTEXT_CHARS = 2000  # compared on either side of an occurrence
_MAX_OCCURRENCES = 2000
INSERTION = "PURE INSERTION AFTER LINE:"


class Region(Struct, frozen=True):
    """The lines to replace (from 1, both inclusive), and the old text in them.

    `old` is empty for an insertion before line `start`. If it begins or ends inside a
    line, the other parts of the line stay: `head` before it, `tail` after it.
    """

    start: int
    end: int
    old: str
    shown: str  # the old text of the whole lines, in the form for clients
    head: str = ""
    tail: str = ""


def normal(text: str) -> str:
    """Return the text with LF as line ending."""
    return _BREAK.sub("\n", text)


def line_ending(*texts: str) -> str:
    """Return the common line ending of all texts; "" if there are several, or none."""
    endings = {match[0] for match in _BREAK.finditer("".join(texts))}
    return endings.pop() if len(endings) == 1 else ""


def lines(text: str) -> list[str]:
    """Split a text into lines with their line endings."""
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
    to_end = None
    if not old.endswith(("\r", "\n")):
        to_end = _TO_LINE_END.match(file, begin + len(old))
    tail = to_end[0] if to_end else ""
    end = line_at(file, begin + len(old.rstrip("\r\n")))
    return Region(start, max(start, end), old, f"{head}{old}{tail}", head, tail)


def find(file: str, wanted: str, prefix: str = "", suffix: str = "") -> int | None:
    """Return the offset of a text in a file, regardless of line endings.

    If it occurs several times, the occurrence with the best matching context counts.
    """
    if not wanted:
        return None
    text, sought = normal(file), normal(wanted)
    before, after = normal(prefix)[-_CONTEXT_CHARS:], normal(suffix)[:_CONTEXT_CHARS]
    best, best_start = -1, -1
    start, tried = text.find(sought), 0
    while start >= 0 and tried < _MAX_OCCURRENCES:
        end = start + len(sought)
        above = text[max(0, start - _CONTEXT_CHARS) : start]
        agreement = _common_length(above[::-1], before[::-1])
        agreement += _common_length(text[end : end + _CONTEXT_CHARS], after)
        if agreement > best:
            best, best_start = agreement, start
        start, tried = text.find(sought, start + 1), tried + 1
    return original(file, best_start) if best >= 0 else None


def original(file: str, offset: int) -> int:
    """Convert an offset in the text with LF to one in the file."""
    for match in re.finditer("\r\n", file):
        if match.start() >= offset:
            break
        offset += 1
    return offset


def _common_length(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    length = min(len(one), len(other))
    return next((n for n in range(length) if one[n] != other[n]), length)


class Endings:
    """A Stage[str, str] that ends every line with `ending`; "" changes nothing.

    `last` tells whether the last line must have a line ending, too; None keeps the
    model's.
    """

    def __init__(self, ending: str, last: bool | None) -> None:
        self._ending = ending
        self._last = last
        self._buffer = ""  # a line break that may be the end of the text
        self._has_output = False

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but a line break at the end."""
        text, self._buffer = self._buffer + text, ""
        if text.endswith("\r\n"):
            cut = len(text) - 2
        else:
            cut = len(text) - text.endswith(("\r", "\n"))
        text, self._buffer = text[:cut], text[cut:]
        if text:
            self._has_output = True
            yield self._convert(text)

    def flush(self) -> Iterator[str]:
        """Return the end of the last line."""
        ending = self._convert(self._buffer)
        if self._last and not ending and self._has_output:
            yield self._ending or "\n"
        elif ending and self._last is not False:
            yield ending

    def _convert(self, text: str) -> str:
        return _BREAK.sub(self._ending, text) if self._ending else text


class Trimmer:
    """A Stage[str, str] that removes white space around the text."""

    def __init__(self) -> None:
        self._has_output = False
        self._blanks: list[str] = []  # white space that may be at the end

    def feed(self, text: str, /) -> Iterator[str]:
        """Return everything but white space at the ends."""
        if not self._has_output:
            text = text.lstrip()
        bare = text.rstrip()
        if bare:
            self._has_output = True
            yield "".join((*self._blanks, bare))
            self._blanks.clear()
        if self._has_output and len(bare) < len(text):
            self._blanks.append(text[len(bare) :])

    def flush(self) -> Iterator[str]:
        """Drop white space at the end."""
        self._blanks.clear()
        return iter(())
