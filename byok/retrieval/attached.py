"""Write the files that a user attached to a question, within a length limit.

They are shown whole if they fit. Otherwise they share the room equally, and what a
small file does not use goes to the larger ones. Of a file that is cut, the sections
that the question is about are shown, and as much of its start as fits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from byok.escapes import escape
from byok.retrieval.excerpts import FindSpots, find_nothing
from byok.retrieval.pack import (
    GAP_LINE,
    LONGEST_LINE,
    NUMBER_WIDTH,
    PATH_LINE,
    PackedFile,
    Section,
    merge_spans,
)
from byok.retrieval.render import FileBlock, RenderedAnswer, write_block
from byok.truncate import fair_share

_HEADING = "[files that the user attached]\n"
_EMPTY = "(the file is empty)\n"
_NO_ROOM = "attached too, but there is no room for it."
_LEAST = 1000
_NOTES_SHARE = 4

# Which sections of a blob to show in so many characters; none means its start.
Parts: TypeAlias = Callable[[int, int], Sequence[Section]]


class Attached(NamedTuple):
    """An attached file: the id of its content, its path and its lines."""

    blob_id: int
    path: str
    lines: Sequence[str]


def max_attached(limit: int) -> int:
    """Return how many attached files an answer of `limit` characters can show."""
    return max(1, limit // _LEAST)


def render_attached(
    files: Sequence[Attached],
    limit: int,
    notes: Iterable[str] = (),
    parts: Parts = lambda blob_id, room: (),
    *,
    find: FindSpots = find_nothing,
) -> RenderedAnswer:
    """Write the files, and notes about others, in at most `limit` characters.

    `parts` selects the sections of a file that does not fit: it is called with a blob
    id and a number of characters. Without sections the file is shown from its start.
    Long lines are cut around what `find` finds.
    """
    said = _write_notes(notes, limit // _NOTES_SHARE)
    room = max(0, limit - len(_HEADING) - len(said))
    blocks = [_write_start(file, room, find) for file in files]
    wanted = [len(found.text) if found.whole else room for found in blocks]
    cap = fair_share(wanted, room)
    fitting = [
        found
        if len(found.text) <= cap and found.whole
        else _write_sections(file, cap, parts, find) or _write_start(file, cap, find)
        for file, found in zip(files, blocks, strict=True)
    ]
    text = "".join(found.text for found in fitting) + said
    left = [f"{found.shown.path}: {_NO_ROOM}" for found in fitting if not found.text]
    text += _write_notes(left, limit - len(_HEADING) - len(text))
    shown = tuple(found.shown for found in fitting if found.text)
    return RenderedAnswer(_HEADING + text if text else "", shown)


def _write_notes(notes: Iterable[str], room: int) -> str:
    """Write as many notes as fit, each as a line in parentheses."""
    text = ""
    for note in notes:
        line = f"({escape(note)})\n"
        if len(text) + len(line) <= room:
            text += line
    return text


def _write_sections(
    file: Attached, room: int, parts: Parts, find: FindSpots
) -> FileBlock | None:
    """Write the sections of a file that the question is about; None if there are none.

    The remaining room is filled with the start, where imports and comments are.
    """
    room -= len(GAP_LINE)
    sections = tuple(parts(file.blob_id, room))
    found = _write_block(file, sections, room, find)
    if not found.text:
        return None
    start = _lines_within(file.lines, room - len(found.text) - len(GAP_LINE)) - 1
    if start > 0:
        wider = merge_spans((Section(0, start - 1), *sections))
        more = _write_block(file, wider, room, find)
        found = more if more.whole else found
    return _mark_cut(found, file)


def _write_block(
    file: Attached, sections: tuple[Section, ...], room: int, find: FindSpots
) -> FileBlock:
    part = PackedFile(file.blob_id, file.path, sections)
    return write_block(part, file.lines, room, least=1, find=find)


def _write_start(file: Attached, room: int, find: FindSpots) -> FileBlock:
    """Write a file from its first line, whole or cut."""
    if not file.lines:
        nothing = PackedFile(file.blob_id, file.path, ())
        text = PATH_LINE.format(escape(file.path)) + _EMPTY
        return FileBlock(text if len(text) <= room else "", nothing, whole=True)
    count = _lines_within(file.lines, room)
    start = (Section(0, count - 1),)
    if count == len(file.lines):
        return _write_block(file, start, room, find)
    return _mark_cut(_write_block(file, start, room - len(GAP_LINE), find), file)


def _mark_cut(found: FileBlock, file: Attached) -> FileBlock:
    """Add the gap line if the file continues below what is shown."""
    text, shown = found.text, found.shown.sections
    below = text and shown[-1].last < len(file.lines) - 1
    if below and not text.endswith("\n" + GAP_LINE):
        text += GAP_LINE
    return found._replace(text=text, whole=False)


def _lines_within(lines: Sequence[str], room: int) -> int:
    """Return how many lines fill the room; a file may have a million."""
    for count, line in enumerate(lines, 1):
        room -= min(len(line), LONGEST_LINE) + NUMBER_WIDTH + 1
        if room < 0:
            return count
    return len(lines)
