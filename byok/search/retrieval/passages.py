"""Find the code that goes into a chat: attached files, and matches of the question.

The result also says which characters of the client's files the model is shown, and
which of the blobs that the client named are unknown here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from byok.core.code_query import (
    CodeContextBlock,
    CodeQuestion,
    FileChunk,
    SearchMode,
    to_text,
)
from byok.core.errors import IndexFailed, NotReady
from byok.core.escapes import escape, fair_share
from byok.search.index.contents import Contents, Entry
from byok.search.index.engine import ContextEngine
from byok.search.index.files.text import line_starts, lines_in
from byok.search.index.store.chunk_index import View
from byok.search.index.store.schema import NAMED
from byok.search.index.types import SkipReason, Span
from byok.search.retrieval import query as queries
from byok.search.retrieval.excerpts import (
    CurrentFiles,
    FindSpots,
    find_nothing,
    find_terms,
)
from byok.search.retrieval.model_aids import ModelAids, RemoteAnswer
from byok.search.retrieval.pack import (
    GAP_LINE,
    MAX_LINE_CHARS,
    NUMBER_WIDTH,
    PATH_LINE,
    PackedFile,
    Section,
    leave_out_copies,
    merge_spans,
    pack,
)
from byok.search.retrieval.query import Query
from byok.search.retrieval.ranker import Ranker, Ranking
from byok.search.retrieval.render import (
    FileBlock,
    RenderedAnswer,
    copy_note,
    render,
    write_block,
)
from byok.search.retrieval.scope import Scope, select_scope

# Write the files that a user attached to a question, within a length limit.
#
# They are shown whole if they fit. Otherwise they share the room equally, and what a
# small file does not use goes to the larger ones. Of a file that is cut, the sections
# that the question is about are shown, and as much of its start as fits.


_ATTACHED_HEADING = "[files that the user attached]\n"
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
    room = max(0, limit - len(_ATTACHED_HEADING) - len(said))
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
    text += _write_notes(left, limit - len(_ATTACHED_HEADING) - len(text))
    shown = tuple(found.shown for found in fitting if found.text)
    return RenderedAnswer(_ATTACHED_HEADING + text if text else "", shown)


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
        room -= min(len(line), MAX_LINE_CHARS) + NUMBER_WIDTH + 1
        if room < 0:
            return count
    return len(lines)


_log = logging.getLogger(__name__)
_HEADING = "[code of the workspace that may be relevant]\n"
_WORTH_SHOWING = 400
# Seconds for a whole search, and of these for files that were just saved, and for the
# vector of a question of which no word matches.
_SECONDS, _SETTLE_SECONDS, _VECTOR_SECONDS = 5.0, 0.25, 2.0
_FEWEST_TERMS = 3  # of a message of which no word matches, to show what is near to it
_NOTHING = RenderedAnswer("", ())
_NO_RANKING = Ranking([], {})


class PassageFinder(Struct, eq=False):
    """Finds code for a chat; see `find`."""

    engine: ContextEngine
    ranker: Ranker
    mode: SearchMode = SearchMode.AUTO
    aids: Callable[[], ModelAids] = ModelAids
    seconds: float = _SECONDS

    async def find(self, wanted: CodeQuestion, length: int) -> CodeContextBlock:
        """Return code of at most `length` characters; attached files come first.

        Only the index is searched: ripgrep takes longer than a chat should wait.

        Raises:
            NotReady: it took longer than the seconds that a chat may wait.
        """
        try:
            async with asyncio.timeout(self.seconds):
                await self.ranker.wait_until_indexed(_SETTLE_SECONDS)
                scope = None
                if not wanted.blobs.is_empty:
                    scope = await select_scope(self.engine, wanted.blobs, ())
                # The first question in another language loads its table.
                query = await asyncio.to_thread(queries.parse_query, wanted.question)
                found = await self._search(wanted.question, query, scope)
                return await asyncio.to_thread(
                    self._gather, wanted, query, scope, found, length
                )
        except TimeoutError as error:
            raise NotReady(f"No code was found in {self.seconds:g} s.") from error

    async def _search(
        self, question: str, query: Query, scope: Scope | None
    ) -> tuple[Ranking, RemoteAnswer | None]:
        """Search here and at the search server; nothing for stop words alone."""
        if scope is None or query.only_stop_words:
            return _NO_RANKING, None
        async with self.aids().ask_remote(question, scope) as asked:
            ranking = await self._rank(question, query, scope)
            return ranking, await asked if asked else None

    async def _rank(self, question: str, query: Query, scope: Scope) -> Ranking:
        # Something is near to any message, also to a greeting.
        enough = len(query.terms) >= _FEWEST_TERMS
        if self.mode is not SearchMode.RIPGREP:
            try:
                patience = _VECTOR_SECONDS if enough else 0.0
                return await self.ranker.rank(question, query, scope, patience=patience)
            except IndexFailed as error:
                _log_failure(error)
        return _NO_RANKING

    def _gather(
        self,
        wanted: CodeQuestion,
        query: Query,
        scope: Scope | None,
        found: tuple[Ranking, RemoteAnswer | None],
        length: int,
    ) -> CodeContextBlock:
        files = _FileReader(self.engine.contents)
        attached = _attachments(files, wanted.guided, max_attached(length))
        parts = _QuestionSections(
            self._rank_by_index, query, [file.blob_id for file in attached.files]
        )
        find = find_terms(query.terms)
        first = render_attached(
            attached.files, length, attached.notes, parts, find=find
        )
        room = length - len(first.text) - bool(first.text)
        second, below = _NOTHING, ""
        if room >= _WORTH_SHOWING:
            ranking, remote = found
            if remote is not None and scope is not None:
                current = CurrentFiles(
                    self.engine.contents, ranking.entries, scope, query
                )
                below = remote.write(ranking.files, current, room).strip("\n")
                room -= len(below) + bool(below)
            second = _write_found(ranking, files, first.shown, room, find)
        said = (*wanted.blobs.added, *wanted.guided)
        unknown = [*(scope.unknown if scope else ()), *attached.unknown]
        return CodeContextBlock(
            "\n".join(filter(None, (first.text, second.text, below))),
            tuple(files.chunks((*first.shown, *second.shown), said)),
            tuple(map(to_text, dict.fromkeys(unknown))),
            scope is None or scope.checkpoint_found,
        )

    def _rank_by_index(self, query: Query, scope: Scope) -> Ranking:
        """Rank files by their words; nothing if the index is off or failed."""
        if self.mode is not SearchMode.RIPGREP:
            try:
                return self.ranker.rank_by_words(query, scope)
            except IndexFailed as error:
                _log_failure(error)
        return _NO_RANKING


def _log_failure(error: IndexFailed) -> None:
    _log.error("a chat continues without the index: %s", error.sentence)


def _write_found(
    ranking: Ranking,
    files: "_FileReader",
    shown: Iterable[PackedFile],
    room: int,
    find: FindSpots,
) -> RenderedAnswer:
    """Write what a question finds, without the files that are shown already."""
    # An attached file may be in the index in another version, too.
    known = {file.path for file in shown}
    fresh = [file for file in ranking.files if file.path not in known]
    entries = ranking.entries

    def spans_of(blob_id: int) -> Sequence[Span]:
        return entries[blob_id].spans

    def lines_of(blob_id: int) -> Sequence[str] | None:
        lines = files.lines(entries[blob_id])
        return lines if isinstance(lines, list) else None

    fresh, copies = leave_out_copies(fresh, spans_of, lines_of)
    packed = pack(fresh, spans_of, room)
    notes = [
        copy_note(file.path, copies[file.blob_id])
        for file in packed.files
        if file.blob_id in copies
    ]
    answer = render(
        packed,
        lambda file: lines_of(file.blob_id),
        room,
        notes,
        find=find,
        heading=_HEADING,
    )
    return answer if answer.shown else _NOTHING


class _QuestionSections:
    """The sections of attached files that a question is about.

    They are ranked when the first file does not fit. A question without a search term,
    such as "Explain this file", selects none.
    """

    def __init__(
        self,
        rank: Callable[[Query, Scope], Ranking],
        query: Query,
        blob_ids: Iterable[int],
    ) -> None:
        self._rank = rank
        self._query = query
        self._ids = frozenset(blob_ids)
        self._found: Ranking | None = None

    def __call__(self, blob_id: int, room: int) -> Sequence[Section]:
        if self._query.only_task_words:
            return ()
        if self._found is None:
            view = View(f"attached.{hash(self._ids):x}", self._ids, chunks=0)
            self._found = self._rank(self._query, Scope(view, ()))
        ranked, entries, *_ = self._found
        file = [file for file in ranked if file.blob_id == blob_id]
        packed = pack(file, lambda blob_id: entries[blob_id].spans, room)
        return packed.files[0].sections if packed.files else ()


class _FileReader:
    """Reads the files of an answer, and keeps each as it was read."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._read: dict[int, bytes] = {}

    def lines(self, entry: Entry) -> list[str] | SkipReason | None:
        """Return the lines, the reason they are not shown, or None: it is gone."""
        if self.contents.is_private(entry):
            return SkipReason.SECRET
        content = self.contents.content_of(entry)
        if content is None:
            return None
        self._read[entry.blob_id] = content
        return lines_in(content, entry.path)

    def chunks(
        self, shown: Sequence[PackedFile], said: Iterable[bytes]
    ) -> Iterator[FileChunk]:
        """Give the shown character ranges, by blob names that the client used.

        `said` are the names in its request.
        """
        names = self.contents.names_of([file.blob_id for file in shown], said)
        for file in shown:
            if file.blob_id in names:
                name = to_text(names[file.blob_id])
                starts = line_starts(self._read[file.blob_id])
                for first, last in file.sections:
                    yield FileChunk(name, starts[first], starts[last + 1])


class _Attachments(NamedTuple):
    """The attached files to show, the unknown blob names, and notes on the rest."""

    files: list[Attached]
    unknown: list[bytes]
    notes: list[str]

    def add(
        self, name: bytes, entry: Entry, lines: list[str] | SkipReason | None
    ) -> None:
        """Add a file, or say why it cannot be shown."""
        if lines is None:
            self.unknown.append(name)
        elif isinstance(lines, SkipReason):
            path = entry.path or "A file"
            why = f"is attached too, but not shown: {lines.explanation}."
            self.notes.append(f"{path} {why}")
        else:
            self.files.append(Attached(entry.blob_id, entry.path, lines))


def _attachments(files: _FileReader, names: Sequence[bytes], most: int) -> _Attachments:
    """Read the files that the user attached, at most `most`; each counts once."""
    found = _Attachments([], [], [])
    known = files.contents.find_entries(names)
    here = {entry.id for entry in known.values() if entry.state != NAMED}
    entries = files.contents.entries(here)
    beyond = 0
    for name in names:
        entry = entries.get(known[name].id) if name in known else None
        if entry is None:
            found.unknown.append(name)
        elif entry.blob_id not in here:
            continue
        elif len(found.files) == most:
            beyond += 1
        else:
            here.remove(entry.blob_id)
            lines, reason = files.lines(entry), known[name].reason
            if lines is None and reason is not None:
                lines = SkipReason(reason)
            found.add(name, entry, lines)
    if beyond:
        found.notes.append(f"{beyond} more files are attached, but there is no room.")
    return found
