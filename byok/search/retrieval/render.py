"""Write the text of an answer in the layout that models and clients expect.

    The following code sections were retrieved:
    Path: src/login.py
         1<tab>from .store import find_user
    ...
        38<tab>class Login:
    ...
        41<tab>    def login(name: str) -> Session:

Above a section stand the lines that begin its class and its function, unless only one
line of the file is shown. Paths without code, and notes, come below. The text of files
is escaped and masked, so that it cannot imitate a line that byok writes itself.
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
_OTHER_FILES = "\nOther files that may be relevant:\n"
FILES_FOUND = "\nFiles that may be relevant:\n"
_NO_CODE = "No code was found for this request (no matches).\n"
_TOO_SHORT = "Code was found, but none of it fits into an answer of this length.\n"
# A section that does not fit is cut if at least this many of its lines fit.
_MIN_CUT_LINES = 5
_MAX_NAMED_COPIES = 3  # of one file


class RenderedAnswer(NamedTuple):
    """The text of an answer, and the sections that it shows, in order."""

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
    shown, which a note says. Long lines are cut around the matches of `find`. Notes get
    at most a third of the limit, listed paths at most a quarter. Code gets the other
    characters and is cut at line ends. A file of which nothing fits is listed by its
    path, and then the list gets all that the code leaves. `listed` is the heading of a
    list without code, `nothing` the text before the sentence that no code was found.
    """
    contents = [(file, lines_of(file)) for file in packed.files]
    unreadable = [file.path for file, lines in contents if lines is None]
    all_notes = [*notes, _unreadable_note(unreadable)] if unreadable else list(notes)
    notes_text = _list_rows("\n", (f"{note}\n" for note in all_notes), limit // 3)
    others_text = _list_paths(_OTHER_FILES, packed.others, limit // 4)
    free = limit - len(heading) - len(others_text) - len(notes_text)
    blocks, omitted = _write_files(contents, free, find)
    start = heading if blocks else ""
    code = "".join(block.text for block in blocks)
    if omitted or not blocks:
        free = limit - len(start) - len(code) - len(notes_text)
        list_heading = _OTHER_FILES if blocks else listed
        others_text = _list_paths(list_heading, [*omitted, *packed.others], free)
    if not blocks and not others_text:
        start = _TOO_SHORT if omitted else nothing + _NO_CODE
    text = (start + code + others_text + notes_text).removeprefix("\n")
    return RenderedAnswer(text[: max(0, limit)], tuple(block.shown for block in blocks))


def _write_files(
    contents: Iterable[tuple[PackedFile, Sequence[str] | None]],
    free: int,
    find: FindSpots,
) -> tuple[list[FileBlock], list[str]]:
    """Write files into `free` characters; return also the paths of omitted files."""
    blocks: list[FileBlock] = []
    omitted: list[str] = []
    is_full = False
    for file, lines in contents:
        if lines is None:
            continue
        block = FileBlock("", file, whole=False)
        if not is_full:
            block = write_block(file, lines, free, find=find)
        is_full = not block.whole
        free -= len(block.text)
        if block.text:
            blocks.append(block)
        elif is_full:
            omitted.append(file.path)
    return blocks, omitted


def write_block(
    file: PackedFile,
    lines: Sequence[str],
    free: int,
    min_lines: int = _MIN_CUT_LINES,
    find: FindSpots = find_nothing,
) -> FileBlock:
    """Write the sections that fit; the last one may be cut to `min_lines` or more."""
    text = PATH_LINE.format(escape(file.path))
    shown: list[Section] = []
    written: set[int] = set()  # numbers of lines
    sections = file.sections
    is_glimpse = bool(sections) and sections[0].first == sections[-1].last
    whole = True
    for first, last in sections:
        gap = GAP_LINE if shown else ""
        if not is_glimpse:
            enclosing = [n for n in find_enclosing(lines, first) if n not in written]
            written.update(enclosing)
            above = [_rows(lines, n, n, file.path, find_nothing)[0] for n in enclosing]
            gap += "".join([*above, GAP_LINE]) if above else ""
        rows = _rows(lines, first, last, file.path, find)
        if len(text) + len(gap) + sum(map(len, rows)) > free:
            whole = False
            row_space = free - len(text) - len(gap) - len(GAP_LINE)
            rows = _cut_rows(rows, row_space, min_lines)
        if rows:
            text += gap + "".join(rows) + ("" if whole else GAP_LINE)
            shown.append(Section(first, first + len(rows) - 1))
            written.update(range(first, first + len(rows)))
        if not whole:
            break
    return FileBlock(text if shown else "", file._replace(sections=(*shown,)), whole)


def _cut_rows(rows: list[str], free: int, min_lines: int) -> list[str]:
    count = 0
    for row in rows:
        free -= len(row)
        if free < 0:
            break
        count += 1
    return rows[:count] if count >= min_lines or count == len(rows) else []


def _rows(
    lines: Sequence[str], first: int, last: int, path: str, find: FindSpots
) -> list[str]:
    """Return the lines with their numbers, masked and cut."""
    texts = show_lines(lines, first, last, find, path=path)
    return [f"{n + 1:6d}\t{escape(line)}\n" for n, line in enumerate(texts, first)]


def _list_paths(heading: str, paths: Iterable[str], free: int) -> str:
    return _list_rows(heading, map(PATH_LINE.format, paths), free)


def _list_rows(heading: str, rows: Iterable[str], free: int) -> str:
    """Return the heading and the rows that fit; "" if no row fits."""
    text = heading
    for row in rows:
        row = escape(row[:-1]) + "\n"
        if len(text) + len(row) > free:
            break
        text += row
    return text if text != heading else ""


def copy_note(path: str, others: Sequence[str]) -> str:
    """Return a sentence on other files that contain the shown lines of a file."""
    listed = ", ".join(others[:_MAX_NAMED_COPIES])
    if more := len(others[_MAX_NAMED_COPIES:]):
        listed += f" and {more} more file{'s' if more > 1 else ''}"
    return f"The lines of {path} are also in {listed}."


def _unreadable_note(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return f"{paths[0]} matches too, but can no longer be read."
    return f"{len(paths)} more files match, but can no longer be read."
