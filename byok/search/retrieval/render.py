"""Write the text of an answer, in the layout that models and clients are used to.

    The following code sections were retrieved:
    Path: src/login.py
         1<tab>from .store import find_user
    ...
        38<tab>class Login:
    ...
        41<tab>    def login(name: str) -> Session:

Above a section stand the lines of the class and the function that it is in, but not
where one line is all that is shown of a file.
Paths that are only listed, and notes, come below. What is shown comes from files, so it
is escaped and masked, and cannot imitate a line that byok writes itself.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from byok.core.escapes import escape
from byok.search.retrieval.excerpts import (
    FindSpots,
    find_enclosing,
    find_nothing,
    show_lines,
)
from byok.search.retrieval.pack import (
    GAP_LINE,
    PATH_LINE,
    PackedAnswer,
    PackedFile,
    Section,
)

HEADING = "The following code sections were retrieved:\n"
ALL_FILES = "\nNo code was found for this request (no matches). The files here:\n"
_OTHERS = "\nOther files that may be relevant:\n"
FILES_FOUND = "\nFiles that may be relevant:\n"
_NOTHING = "No code was found for this request (no matches).\n"
_TOO_SHORT = "Code was found, but none of it fits into an answer of this length.\n"
# A section that does not fit is cut if at least so many of its lines fit.
_WORTH_CUTTING = 5
_NAMED_COPIES = 3  # of one file


class RenderedAnswer(NamedTuple):
    """The text, and the sections it shows, in order."""

    text: str
    shown: tuple[PackedFile, ...]


class FileBlock(NamedTuple):
    """The text of a file, "" if nothing fits, and the sections that it shows.

    `whole` says that no requested line was left out.
    """

    text: str
    shown: PackedFile
    whole: bool


def render(
    packed: PackedAnswer,
    lines_of: Callable[[PackedFile], Sequence[str] | None],
    limit: int,
    notes: Iterable[str] = (),
    *,
    find: FindSpots = find_nothing,
    heading: str = HEADING,
    listed: str = FILES_FOUND,
    nothing: str = "",
) -> RenderedAnswer:
    """Write the answer, at most `limit` characters.

    `lines_of` returns the current lines of a file, or None if it can no longer be
    shown; a note says so. Long lines are cut around what `find` finds. Notes get at
    most a third of the limit. The listed paths get a quarter. Code gets the rest and is
    cut at line ends. If nothing of a file fits, it is listed by its path, and the list
    gets all that the code leaves; `listed` heads a list that stands without code,
    `nothing` the sentence that says that there is none.
    """
    contents = [(file, lines_of(file)) for file in packed.files]
    gone = [file.path for file, lines in contents if lines is None]
    said = [*notes, _unreadable_note(gone)] if gone else list(notes)
    notes_text = _list_rows("\n", (f"{note}\n" for note in said), limit // 3)
    others_text = _list_paths(_OTHERS, packed.others, limit // 4)
    room = limit - len(heading) - len(others_text) - len(notes_text)
    blocks, left = _fill(contents, room, find)
    start = heading if blocks else ""
    code = "".join(found.text for found in blocks)
    if left or not blocks:
        room = limit - len(start) - len(code) - len(notes_text)
        above = _OTHERS if blocks else listed
        others_text = _list_paths(above, [*left, *packed.others], room)
    if not blocks and not others_text:
        start = _TOO_SHORT if left else nothing + _NOTHING
    text = (start + code + others_text + notes_text).removeprefix("\n")
    return RenderedAnswer(text[: max(0, limit)], tuple(found.shown for found in blocks))


def _fill(
    contents: Iterable[tuple[PackedFile, Sequence[str] | None]],
    room: int,
    find: FindSpots,
) -> tuple[list[FileBlock], list[str]]:
    """Write files until the room is used up; return also the paths of the others."""
    blocks: list[FileBlock] = []
    left: list[str] = []
    full = False
    for file, lines in contents:
        if lines is None:
            continue
        found = FileBlock("", file, whole=False)
        if not full:
            found = write_block(file, lines, room, find=find)
        full = not found.whole
        room -= len(found.text)
        if found.text:
            blocks.append(found)
        elif full:
            left.append(file.path)
    return blocks, left


def write_block(
    file: PackedFile,
    lines: Sequence[str],
    room: int,
    least: int = _WORTH_CUTTING,
    find: FindSpots = find_nothing,
) -> FileBlock:
    """Write the sections of a file that fit; cut one to at least `least` lines."""
    text = PATH_LINE.format(escape(file.path))
    shown: list[Section] = []
    seen: set[int] = set()  # lines
    is_line = (
        file.sections[0].first == file.sections[-1].last if file.sections else False
    )
    whole = True
    for first, last in file.sections:
        gap = GAP_LINE if shown else ""
        if not is_line:
            around = [n for n in find_enclosing(lines, first) if n not in seen]
            seen.update(around)
            above = [_rows(lines, n, n, file.path, find_nothing)[0] for n in around]
            gap += "".join([*above, GAP_LINE]) if above else ""
        rows = _rows(lines, first, last, file.path, find)
        if len(text) + len(gap) + sum(map(len, rows)) > room:
            whole = False
            left = room - len(text) - len(gap) - len(GAP_LINE)
            rows = _cut_rows(rows, left, least)
        if rows:
            text += gap + "".join(rows) + ("" if whole else GAP_LINE)
            shown.append(Section(first, first + len(rows) - 1))
            seen.update(range(first, first + len(rows)))
        if not whole:
            break
    return FileBlock(text if shown else "", file._replace(sections=(*shown,)), whole)


def _cut_rows(rows: list[str], room: int, least: int) -> list[str]:
    count = 0
    for row in rows:
        room -= len(row)
        if room < 0:
            break
        count += 1
    return rows[:count] if count >= least or count == len(rows) else []


def _rows(
    lines: Sequence[str], first: int, last: int, path: str, find: FindSpots
) -> list[str]:
    shown = show_lines(lines, first, last, find, path=path)
    return [f"{n + 1:6d}\t{escape(line)}\n" for n, line in enumerate(shown, first)]


def _list_paths(heading: str, paths: Iterable[str], room: int) -> str:
    return _list_rows(heading, map(PATH_LINE.format, paths), room)


def _list_rows(heading: str, rows: Iterable[str], room: int) -> str:
    """Return the heading and the rows that fit below it; "" if none fits."""
    text = heading
    for row in rows:
        row = escape(row[:-1]) + "\n"
        if len(text) + len(row) > room:
            break
        text += row
    return text if text != heading else ""


def copy_note(path: str, others: Sequence[str]) -> str:
    """Return a sentence on other files that have the lines shown of one."""
    named = ", ".join(others[:_NAMED_COPIES])
    if more := len(others[_NAMED_COPIES:]):
        named += f" and {more} more file{'s' if more > 1 else ''}"
    return f"The lines of {path} are also in {named}."


def _unreadable_note(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"{paths[0]} matches too, but can no longer be read."
    return f"{len(paths)} more files match, but can no longer be read."
