"""Search the index for a scope, and rank the files that were found."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from byok.index.contents import Contents, Entry
from byok.index.engine import ContextEngine
from byok.index.files.languages import kind_of
from byok.index.store.chunk_index import CANDIDATES, ChunkScore
from byok.retrieval.fusion import fuse
from byok.retrieval.history_signals import HistorySignals, JoinedSignals
from byok.retrieval.identifier import definition_marks
from byok.retrieval.masking import mask_lines
from byok.retrieval.model_aids import FindNear, ModelAids, NearChunks
from byok.retrieval.query import Query
from byok.retrieval.rank import MOST_FILES, FileEntry, RankedFile, rank
from byok.retrieval.scope import Scope

_FEW = 50
_MANY = 100  # definitions of one name
# Seconds to wait for the vector of a question; without any match there is more time.
_VECTOR_SECONDS, _ONLY_VECTOR_SECONDS = 0.4, 5.0
_SCAN_SECONDS = 2.0  # to find what is near to it; it takes a few milliseconds
_SHOWN_CHUNKS = 3  # of a file, to a model that orders files
_NO_AIDS = ModelAids()


class Ranking(NamedTuple):
    """Ranked files, best first, and index entries by blob id."""

    files: list[RankedFile]
    entries: Mapping[int, Entry]


class Ranker:
    """Ranks files by the index; keeps the history signals of each workspace.

    `aids` returns what the user's models may add at the moment.
    """

    def __init__(
        self, engine: ContextEngine, aids: Callable[[], ModelAids] = lambda: _NO_AIDS
    ) -> None:
        self._engine = engine
        self._aids = aids
        self._signals: dict[int, tuple[str, HistorySignals]] = {}

    async def wait_until_indexed(self, seconds: float) -> None:
        """Wait at most `seconds` for pending files; not at all for 50 or more."""
        if 0 < self._engine.indexer.open_tasks < _FEW:
            await self._engine.uploads.wait_until_indexed(seconds)

    async def rank(
        self,
        question: str,
        query: Query,
        scope: Scope,
        *,
        may_rerank: bool = False,
        patience: float = _ONLY_VECTOR_SECONDS,
    ) -> Ranking:
        """Rank the files of a scope by words, and by the user's models where they may.

        `query` is what `parse_query` makes of the question. Where no word matches, the
        vector of the question may take `patience` seconds; with 0 nothing is found.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        aids = self._aids()
        if aids == _NO_AIDS:
            return await asyncio.to_thread(self.rank_by_words, query, scope)
        vector = None
        if aids.vectors is not None and _says_something(question, query):
            vector = asyncio.ensure_future(aids.vectors.begin(question))
        try:
            if aids.translate is not None:
                query = await aids.translate(question, query)
            hits = await asyncio.to_thread(self._search, query, scope)
            seconds = _VECTOR_SECONDS if hits else patience
            near = None
            if vector and seconds:
                near = await _find_near(vector, hits, scope, seconds)
            ranking = await asyncio.to_thread(self._rank, query, hits, scope, near)
        finally:
            if vector is not None:
                vector.cancel()
        if may_rerank and aids.rerank is not None:
            read = partial(self._read_chunks, ranking.entries)
            files = await aids.rerank(question, query, ranking.files, read)
            ranking = ranking._replace(files=files)
        return ranking

    def rank_by_words(self, query: Query, scope: Scope) -> Ranking:
        """Rank the files of a scope without any model; blocks for milliseconds.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        return self._rank(query, self._search(query, scope), scope)

    def _search(self, query: Query, scope: Scope) -> list[ChunkScore]:
        return self._engine.store.index.search(query.terms, scope.view)

    def _rank(
        self,
        query: Query,
        hits: Sequence[ChunkScore],
        scope: Scope,
        near: NearChunks | None = None,
    ) -> Ranking:
        near_ids = {chunk.blob_id for chunk in near.nearest} if near else set[int]()
        defining = self._find_definitions(query, scope)
        found = {hit.blob_id for hit in (*hits, *defining)} | near_ids
        entries = _Entries(self._engine.contents, found)

        def by_blob(blob_id: int) -> FileEntry | None:
            entry = entries.get(blob_id)
            if entry is None:
                return None
            return FileEntry(blob_id, scope.path_of(entry), kind_of(entry.path))

        def by_path(path: str) -> FileEntry | None:
            blob_id = scope.blob_of(path)
            return FileEntry(blob_id, path, kind_of(path)) if blob_id else None

        signals = self._signals_of(scope)
        limit = MOST_FILES if near is None else CANDIDATES
        files = rank(
            hits, by_blob, query, signals, by_path, defining=defining, limit=limit
        )
        if near is not None:
            files = fuse(files, near, by_blob, query.names)
        return Ranking(files, entries)

    def _find_definitions(self, query: Query, scope: Scope) -> list[ChunkScore]:
        """Return chunks that define the identifier that was asked for, best first.

        What too many chunks define says nothing about any of them.
        """
        if not query.identifier:
            return []
        marks = definition_marks(query.identifier)
        found = self._engine.store.index.find_marked(marks, scope.view, _MANY)
        if len(found) < _MANY:
            return found
        return [chunk for chunk in found if chunk.score > found[-1].score]

    def _read_chunks(
        self, entries: Mapping[int, Entry], file: RankedFile
    ) -> list[list[str]]:
        """Return the lines of a file's best chunks; see `model_aids.ReadChunks`."""
        entry = entries[file.blob_id]
        lines = self._engine.contents.lines_of(entry)
        if lines is None:
            return []
        best = [chunk.ordinal for chunk in file.chunks[:_SHOWN_CHUNKS]] or [0]
        spans = [entry.spans[n] for n in best if n < len(entry.spans)]
        return [mask_lines(lines, s.first, s.last, path=entry.path) for s in spans]

    def _signals_of(self, scope: Scope) -> JoinedSignals:
        """Return the history signals; built again only after a new commit."""
        parts: dict[str, HistorySignals] = {}
        for space in scope.workspaces:
            history = self._engine.history_of(space)
            if history is None or not space.status.was_complete:
                continue  # signals are kept, and half of the files would be missing
            known = self._signals.get(space.id)
            if known is None or known[0] != history.head:
                known = (history.head, HistorySignals(history, space.paths()))
                self._signals[space.id] = known
            parts[scope.prefix_of(space)] = known[1]
        return JoinedSignals(parts)


def _says_something(question: str, query: Query) -> bool:
    """Tell whether a question is more than stop words or signs."""
    if query.terms:
        return not query.only_stop_words
    return any(map(str.isalpha, question))


async def _find_near(
    vector: "asyncio.Future[FindNear | None]",
    hits: Sequence[ChunkScore],
    scope: Scope,
    seconds: float,
) -> NearChunks | None:
    """Return the chunks near to a question, if its vector comes in time."""
    try:
        async with asyncio.timeout(seconds):
            find = await vector
        if find is None:
            return None
        async with asyncio.timeout(_SCAN_SECONDS):
            best_first = dict.fromkeys(hit.blob_id for hit in hits)
            return await find(scope.view, best_first)
    except TimeoutError:
        return None


class _Entries(dict[int, Entry]):
    """Index entries by blob id; those not found by text are read on first use."""

    def __init__(self, contents: Contents, blob_ids: Iterable[int]) -> None:
        super().__init__(contents.entries(blob_ids))
        self._contents = contents

    def __missing__(self, blob_id: int) -> Entry:
        found = self._contents.entries([blob_id]).get(blob_id)
        # It may have been removed meanwhile; then nothing of it is shown.
        self[blob_id] = found or Entry(blob_id, "", b"")
        return self[blob_id]
