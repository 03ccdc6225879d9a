"""Find the code for a chat: attached files, and matches of the question.

The result also says which characters of the client's files the model will see, and
which of the blobs that the client named are unknown here.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
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
    merge_spans,
    pack,
    remove_copies,
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

_log = logging.getLogger(__name__)
_ATTACHED_HEADING = "[files that the user attached]\n"
_EMPTY_FILE = "(the file is empty)\n"
_NO_ROOM_NOTE = "attached too, but there is no room for it."
_MIN_CHARS_PER_FILE = 1000
_NOTES_DIVISOR = 4
_HEADING = "[code of the workspace that may be relevant]\n"
_MIN_CODE_CHARS = 400
# Seconds for a whole search; of these, for files that were just saved, and for the
# vector of a question without matching words.
_SEARCH_SECONDS, _SETTLE_SECONDS, _VECTOR_SECONDS = 5.0, 0.25, 2.0
# Something is near to any message, even to a greeting. So a shorter one without
# matching words gets no near code.
_MIN_TERMS_FOR_VECTOR = 3
_NO_ANSWER = RenderedAnswer("", ())
_NO_RANKING = Ranking([], {})
# Returns the sections to show of a blob in a number of characters; none: its start.
FindSections: TypeAlias = Callable[[int, int], Sequence[Section]]


class AttachedFile(NamedTuple):
    """An attached file: the id of its content, its path and its lines."""

    blob_id: int
    path: str
    lines: Sequence[str]


class PassageFinder(Struct, eq=False):
    """Finds code for chats, from the index and from attached files."""

    engine: ContextEngine
    ranker: Ranker
    mode: SearchMode = SearchMode.AUTO
    aids: Callable[[], ModelAids] = ModelAids
    seconds: float = _SEARCH_SECONDS

    async def find(self, question: CodeQuestion, length: int) -> CodeContextBlock:
        """Return code of at most `length` characters; attached files come first.

        Only the index is searched: ripgrep takes longer than a chat should wait.

        Raises:
            NotReady: it took longer than a chat may wait.
        """
        try:
            async with asyncio.timeout(self.seconds):
                await self.ranker.wait_until_indexed(_SETTLE_SECONDS)
                scope = None
                if not question.blobs.is_empty:
                    scope = await select_scope(self.engine, question.blobs, ())
                # The first question in another language loads its table.
                query = await asyncio.to_thread(queries.parse_query, question.question)
                results = await self._search(question.question, query, scope)
                return await asyncio.to_thread(
                    self._gather, question, query, scope, results, length
                )
        except TimeoutError as error:
            raise NotReady(f"No code was found in {self.seconds:g} s.") from error

    async def _search(
        self, question: str, query: Query, scope: Scope | None
    ) -> tuple[Ranking, RemoteAnswer | None]:
        """Search the index and the search server; nothing for stop words alone."""
        if scope is None or query.only_stop_words:
            return _NO_RANKING, None
        async with self.aids().ask_remote(question, scope) as remote_task:
            ranking = await self._rank(question, query, scope)
            return ranking, await remote_task if remote_task else None

    async def _rank(self, question: str, query: Query, scope: Scope) -> Ranking:
        has_enough_terms = len(query.terms) >= _MIN_TERMS_FOR_VECTOR
        if self.mode is not SearchMode.RIPGREP:
            try:
                patience = _VECTOR_SECONDS if has_enough_terms else 0.0
                return await self.ranker.rank(question, query, scope, patience=patience)
            except IndexFailed as error:
                _log_failure(error)
        return _NO_RANKING

    def _gather(
        self,
        question: CodeQuestion,
        query: Query,
        scope: Scope | None,
        results: tuple[Ranking, RemoteAnswer | None],
        length: int,
    ) -> CodeContextBlock:
        files = _FileReader(self.engine.contents)
        max_files = max(1, length // _MIN_CHARS_PER_FILE)
        attached = _read_attachments(files, question.guided, max_files)
        find_sections = self._attached_sections(
            query, frozenset(file.blob_id for file in attached.files)
        )
        find = find_terms(query.terms)
        first = render_attached(
            attached.files, length, attached.notes, find_sections, find=find
        )
        free = length - len(first.text) - bool(first.text)
        second, remote_text = _NO_ANSWER, ""
        if free >= _MIN_CODE_CHARS:
            ranking, remote = results
            if remote is not None and scope is not None:
                current = CurrentFiles(
                    self.engine.contents, ranking.entries, scope, query
                )
                remote_text = remote.write(ranking.files, current, free).strip("\n")
                free -= len(remote_text) + bool(remote_text)
            second = _write_matches(ranking, files, first.shown, free, find)
        client_names = (*question.blobs.added, *question.guided)
        unknown = [*(scope.unknown if scope else ()), *attached.unknown]
        return CodeContextBlock(
            "\n".join(filter(None, (first.text, second.text, remote_text))),
            tuple(files.chunks((*first.shown, *second.shown), client_names)),
            tuple(map(to_text, dict.fromkeys(unknown))),
            scope is None or scope.checkpoint_found,
        )

    def _attached_sections(self, query: Query, ids: frozenset[int]) -> FindSections:
        """Return what finds the sections of attached files that a question is about.

        Files are ranked by the index, and only when the first of them does not fit. A
        question without a search term, such as "Explain this file", selects no section.
        """

        @cache
        def rank() -> Ranking:
            if self.mode is not SearchMode.RIPGREP:
                view = View(f"attached.{hash(ids):x}", ids, chunks=0)
                try:
                    return self.ranker.rank_by_words(query, Scope(view, ()))
                except IndexFailed as error:
                    _log_failure(error)
            return _NO_RANKING

        def find_sections(blob_id: int, room: int) -> Sequence[Section]:
            if query.only_task_words:
                return ()
            ranked, entries, *_ = rank()
            file = [file for file in ranked if file.blob_id == blob_id]
            packed = pack(file, lambda blob_id: entries[blob_id].spans, room)
            return packed.files[0].sections if packed.files else ()

        return find_sections


def render_attached(
    files: Sequence[AttachedFile],
    limit: int,
    notes: Iterable[str] = (),
    find_sections: FindSections = lambda blob_id, free: (),
    *,
    find: FindSpots = find_nothing,
) -> RenderedAnswer:
    """Write attached files, and notes about others, in at most `limit` characters.

    Files are shown whole if they fit. Otherwise they share the characters equally, and
    those that a small file does not use go to the larger ones. Of a file that is cut,
    the sections of `find_sections` are shown, and as much of its start as fits. Long
    lines are cut around the matches of `find`.
    """
    notes_text = _write_notes(notes, limit // _NOTES_DIVISOR)
    free = max(0, limit - len(_ATTACHED_HEADING) - len(notes_text))
    blocks = [_write_start(file, free, find) for file in files]
    lengths = [len(block.text) if block.whole else free for block in blocks]
    max_chars = fair_share(lengths, free)
    fitting = [
        block
        if len(block.text) <= max_chars and block.whole
        else _write_sections(file, max_chars, find_sections, find)
        or _write_start(file, max_chars, find)
        for file, block in zip(files, blocks, strict=True)
    ]
    text = "".join(block.text for block in fitting) + notes_text
    omitted = [
        f"{block.shown.path}: {_NO_ROOM_NOTE}" for block in fitting if not block.text
    ]
    text += _write_notes(omitted, limit - len(_ATTACHED_HEADING) - len(text))
    written = tuple(block.shown for block in fitting if block.text)
    return RenderedAnswer(_ATTACHED_HEADING + text if text else "", written)


def _write_notes(notes: Iterable[str], free: int) -> str:
    """Write as many notes as fit, each as a line in parentheses."""
    text = ""
    for note in notes:
        line = f"({escape(note)})\n"
        if len(text) + len(line) <= free:
            text += line
    return text


def _write_sections(
    file: AttachedFile, free: int, find_sections: FindSections, find: FindSpots
) -> FileBlock | None:
    """Write the sections of a file that the question is about; None if there are none.

    Remaining characters are filled with its start, which has imports and comments.
    """
    free -= len(GAP_LINE)
    sections = tuple(find_sections(file.blob_id, free))
    block = _write_block(file, sections, free, find)
    if not block.text:
        return None
    start = _lines_within(file.lines, free - len(block.text) - len(GAP_LINE)) - 1
    if start > 0:
        wider_sections = merge_spans((Section(0, start - 1), *sections))
        wider_block = _write_block(file, wider_sections, free, find)
        block = wider_block if wider_block.whole else block
    return _add_cut_mark(block, file)


def _write_block(
    file: AttachedFile, sections: tuple[Section, ...], free: int, find: FindSpots
) -> FileBlock:
    file_part = PackedFile(file.blob_id, file.path, sections)
    return write_block(file_part, file.lines, free, min_lines=1, find=find)


def _write_start(file: AttachedFile, free: int, find: FindSpots) -> FileBlock:
    """Write a file from its first line, whole or cut."""
    if not file.lines:
        empty_part = PackedFile(file.blob_id, file.path, ())
        text = PATH_LINE.format(escape(file.path)) + _EMPTY_FILE
        return FileBlock(text if len(text) <= free else "", empty_part, whole=True)
    count = _lines_within(file.lines, free)
    start = (Section(0, count - 1),)
    if count == len(file.lines):
        return _write_block(file, start, free, find)
    return _add_cut_mark(_write_block(file, start, free - len(GAP_LINE), find), file)


def _add_cut_mark(block: FileBlock, file: AttachedFile) -> FileBlock:
    """Add the gap line if the file continues below what is shown."""
    text, shown = block.text, block.shown.sections
    below = text and shown[-1].last < len(file.lines) - 1
    if below and not text.endswith("\n" + GAP_LINE):
        text += GAP_LINE
    return block._replace(text=text, whole=False)


def _lines_within(lines: Sequence[str], free: int) -> int:
    """Return how many lines fit into `free` characters; a file may have a million."""
    for count, line in enumerate(lines, 1):
        free -= min(len(line), MAX_LINE_CHARS) + NUMBER_WIDTH + 1
        if free < 0:
            return count
    return len(lines)


def _log_failure(error: IndexFailed) -> None:
    _log.error("a chat continues without the index: %s", error.sentence)


def _write_matches(
    ranking: Ranking,
    files: "_FileReader",
    shown: Iterable[PackedFile],
    free: int,
    find: FindSpots,
) -> RenderedAnswer:
    """Write the matches of a question, without the files that are `shown` already."""
    # Compared by path, as the index may have another version of an attached file.
    shown_paths = {file.path for file in shown}
    new_files = [file for file in ranking.files if file.path not in shown_paths]
    entries = ranking.entries

    def spans_of(blob_id: int) -> Sequence[Span]:
        return entries[blob_id].spans

    def lines_of(blob_id: int) -> Sequence[str] | None:
        lines = files.lines(entries[blob_id])
        return lines if isinstance(lines, list) else None

    new_files, copies = remove_copies(new_files, spans_of, lines_of)
    packed = pack(new_files, spans_of, free)
    notes = [
        copy_note(file.path, copies[file.blob_id])
        for file in packed.files
        if file.blob_id in copies
    ]
    answer = render(
        packed,
        lambda file: lines_of(file.blob_id),
        free,
        notes,
        find=find,
        heading=_HEADING,
    )
    return answer if answer.shown else _NO_ANSWER


class _FileReader:
    """Reads the files of an answer, and keeps their contents until it is complete."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._content_of_blob: dict[int, bytes] = {}

    def lines(self, entry: Entry) -> list[str] | SkipReason | None:
        """Return the lines, the reason not to show them, or None if they are gone."""
        if self.contents.is_private(entry):
            return SkipReason.SECRET
        content = self.contents.content_of(entry)
        if content is None:
            return None
        self._content_of_blob[entry.blob_id] = content
        return lines_in(content, entry.path)

    def chunks(
        self, shown: Sequence[PackedFile], client_names: Iterable[bytes]
    ) -> Iterator[FileChunk]:
        """Yield the shown ranges of characters, by blob names that the client used.

        `client_names` are the names in its request.
        """
        names = self.contents.names_of([file.blob_id for file in shown], client_names)
        for file in shown:
            if file.blob_id in names:
                name = to_text(names[file.blob_id])
                starts = line_starts(self._content_of_blob[file.blob_id])
                for first, last in file.sections:
                    yield FileChunk(name, starts[first], starts[last + 1])


class _Attachments(NamedTuple):
    """The attached files to show, unknown blob names, and notes on other files."""

    files: list[AttachedFile]
    unknown: list[bytes]
    notes: list[str]


def _read_attachments(
    files: _FileReader, names: Sequence[bytes], max_files: int
) -> _Attachments:
    """Read the files that the user attached, at most `max_files`; each counts once."""
    attachments = _Attachments([], [], [])
    entries_by_name = files.contents.find_entries(names)
    unread_ids = {
        entry.id for entry in entries_by_name.values() if entry.state != NAMED
    }
    entries = files.contents.entries(unread_ids)
    omitted_count = 0
    for name in names:
        entry = (
            entries.get(entries_by_name[name].id) if name in entries_by_name else None
        )
        if entry is None:
            attachments.unknown.append(name)
        elif entry.blob_id not in unread_ids:
            continue
        elif len(attachments.files) == max_files:
            omitted_count += 1
        else:
            unread_ids.remove(entry.blob_id)
            lines, reason = files.lines(entry), entries_by_name[name].reason
            if lines is None and reason is not None:
                lines = SkipReason(reason)
            if lines is None:
                attachments.unknown.append(name)
            elif isinstance(lines, SkipReason):
                path = entry.path or "A file"
                note = f"is attached too, but not shown: {lines.explanation}."
                attachments.notes.append(f"{path} {note}")
            else:
                file = AttachedFile(entry.blob_id, entry.path, lines)
                attachments.files.append(file)
    if omitted_count:
        attachments.notes.append(
            f"{omitted_count} more files are attached, but there is no room."
        )
    return attachments
