"""The files that a user attached to a question: whole if they fit, else their starts.

What there is room for is shared equally, and what a small file leaves goes to the
larger ones.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from byok.retrieval.pack import (
    GAP_LINE,
    LONGEST_LINE,
    NUMBER_WIDTH,
    PATH_LINE,
    PackedFile,
    Section,
)
from byok.retrieval.render import Answer, Block, block, escaped

_HEADING = "[files that the user attached]\n"
_EMPTY = "(the file is empty)\n"
_NO_ROOM = "attached too, but there is no room for it."
_LEAST = 1000
_NOTES_SHARE = 4


class Attached(NamedTuple):
    """A file to show; its lines are not kept twice."""

    blob_id: int
    path: str
    lines: Sequence[str]


def most_attached(limit: int) -> int:
    """Return of how many files something can be shown."""
    return max(1, limit // _LEAST)


def render_attached(
    files: Sequence[Attached], limit: int, notes: Iterable[str] = ()
) -> Answer:
    """Write files, and notes about others, in at most `limit` characters."""
    said = _written(notes, limit // _NOTES_SHARE)
    room = max(0, limit - len(_HEADING) - len(said))
    blocks = [_start(file, room) for file in files]
    given = shares([len(found.text) for found in blocks], room)
    fitting = [
        found if len(found.text) <= share else _start(file, share)
        for file, found, share in zip(files, blocks, given, strict=True)
    ]
    text = "".join(found.text for found in fitting) + said
    left = [f"{found.shown.path}: {_NO_ROOM}" for found in fitting if not found.text]
    text += _written(left, limit - len(_HEADING) - len(text))
    shown = tuple(found.shown for found in fitting if found.text)
    return Answer(_HEADING + text if text else "", shown)


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """Give each what it wants, or an equal share of what is left by those below."""
    given = [0] * len(wanted)
    ascending = sorted(range(len(wanted)), key=wanted.__getitem__)
    for left, place in zip(range(len(wanted), 0, -1), ascending, strict=True):
        given[place] = min(wanted[place], room // left)
        room -= given[place]
    return given


def _written(notes: Iterable[str], room: int) -> str:
    """Write as many notes as there is room for."""
    text = ""
    for note in notes:
        line = f"({escaped(note)})\n"
        if len(text) + len(line) <= room:
            text += line
    return text


def _start(file: Attached, room: int) -> Block:
    """Write a file from its first line on."""
    path = PATH_LINE.format(escaped(file.path))
    nothing = PackedFile(file.blob_id, file.path, ())
    if not file.lines:
        text = path + _EMPTY
        return Block(text if len(text) <= room else "", nothing, whole=True)
    count = _lines_within(file.lines, room)
    part = nothing._replace(sections=(Section(0, count - 1),))
    if count == len(file.lines):
        return block(part, file.lines, room, least=1)
    found = block(part, file.lines, room - len(GAP_LINE), least=1)
    if found.whole:  # masks made long lines short
        return found._replace(text=found.text + GAP_LINE, whole=False)
    return found


def _lines_within(lines: Sequence[str], room: int) -> int:
    """Return how many lines are enough to fill the room: a file may have a million."""
    for count, line in enumerate(lines, 1):
        room -= min(len(line), LONGEST_LINE) + NUMBER_WIDTH + 1
        if room < 0:
            return count
    return len(lines)
