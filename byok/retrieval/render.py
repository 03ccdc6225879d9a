"""The text of an answer, in the layout that models and clients are used to.

    The following code sections were retrieved:
    Path: src/login.py
         1<tab>from .store import find_user
    ...
        41<tab>def login(name: str) -> Session:

Below come paths that are only named, and notes. What is shown comes from files, so it
is escaped, masked, and can never look like one of our own lines.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from byok.retrieval.masking import mask_lines
from byok.retrieval.pack import GAP_LINE, LONGEST_LINE, PATH_LINE, Packed, PackedFile

_HEADING = "The following code sections were retrieved:\n"
_OTHERS = "\nOther files that may be relevant:\n"
_NOTHING = "No code was found for this request (no matches).\n"
_CUT = " [line cut: {} characters more]"
# A section that does not fit is cut, if so many of its lines do.
_WORTH_CUTTING = 5
_ODD = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069"
    r"\ud800-\udfff]"
)


class Answer(NamedTuple):
    """The text, and the paths whose code it shows."""

    text: str
    shown: tuple[str, ...]


def escaped(text: str) -> str:
    r"""Write control characters, and bytes that are no UTF-8, as `\x1b`."""
    return _ODD.sub(_escape, text) if _ODD.search(text) else text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte that is no UTF-8
        code -= 0xDC00
    if code in (0x0A, 0x0D):
        return "\\n" if code == 0x0A else "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def render(
    packed: Packed,
    lines_of: Callable[[PackedFile], Sequence[str] | None],
    limit: int,
    notes: Iterable[str] = (),
) -> Answer:
    """Write the answer, at most `limit` characters.

    `lines_of` gives the lines of a file as they are now, None where it can no longer be
    shown; a note then says so. Code is cut before paths and notes are, at line ends.
    """
    contents = [(file, lines_of(file)) for file in packed.files]
    gone = [file.path for file, lines in contents if lines is None]
    end = _named(_OTHERS, map(PATH_LINE.format, packed.others), limit // 4)
    said = [*notes, _gone(gone)] if gone else list(notes)
    end += _named("\n", (f"{note}\n" for note in said), limit // 3)
    room = limit - len(_HEADING) - len(end)
    blocks: list[str] = []
    shown: list[str] = []
    for file, lines in contents:
        if lines is None:
            continue
        block, whole = _block(file, lines, room)
        if block:
            blocks.append(block)
            shown.append(file.path)
            room -= len(block)
        if not whole:
            break
    start = _HEADING if blocks else "" if packed.others else _NOTHING
    return Answer((start + "".join(blocks) + end)[: max(0, limit)], tuple(shown))


def _block(file: PackedFile, lines: Sequence[str], room: int) -> tuple[str, bool]:
    """Return what fits of a file, and whether that is all of it."""
    block = PATH_LINE.format(escaped(file.path))
    empty = len(block)
    for first, last in file.sections:
        gap = GAP_LINE if len(block) > empty else ""
        rows = _rows(lines, first, last)
        text = gap + "".join(rows)
        if len(block) + len(text) > room:
            fitting = _fitting(rows, room - len(block) - len(gap) - len(GAP_LINE))
            if fitting:
                block += gap + "".join(fitting) + GAP_LINE
            return (block if len(block) > empty else ""), False
        if rows:
            block += text
    return (block if len(block) > empty else ""), True


def _fitting(rows: Sequence[str], room: int) -> Sequence[str]:
    count = 0
    for row in rows:
        room -= len(row)
        if room < 0:
            break
        count += 1
    return rows[:count] if count >= _WORTH_CUTTING or count == len(rows) else ()


def _rows(lines: Sequence[str], first: int, last: int) -> list[str]:
    shown = mask_lines(lines, first, last)
    return [
        f"{n + 1:6d}\t{_line(line, len(lines[n]) - LONGEST_LINE)}\n"
        for n, line in enumerate(shown, first)
    ]


def _line(line: str, beyond: int) -> str:
    if len(line) > LONGEST_LINE:
        line = line[:LONGEST_LINE] + _CUT.format(beyond)
    return escaped(line)


def _named(heading: str, rows: Iterable[str], room: int) -> str:
    """Return a heading and the rows that fit below it, or nothing."""
    text = heading
    for row in rows:
        row = escaped(row[:-1]) + "\n"
        if len(text) + len(row) > room:
            break
        text += row
    return text if text != heading else ""


def _gone(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"{paths[0]} matches too, but can no longer be read."
    return f"{len(paths)} more files match, but can no longer be read."
