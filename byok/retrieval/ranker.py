"""Search the index for a scope, and rank the files that were found."""

from collections.abc import Iterable, Mapping

from byok.index.contents import Contents, Entry
from byok.index.engine import ContextEngine
from byok.index.files.languages import kind_of
from byok.retrieval.history_signals import HistorySignals, JoinedSignals
from byok.retrieval.query import Query
from byok.retrieval.rank import FileEntry, RankedFile, rank
from byok.retrieval.scope import Scope

_FEW = 50


class Ranker:
    """Ranks files by the index; keeps the history signals of each workspace."""

    def __init__(self, engine: ContextEngine) -> None:
        self._engine = engine
        self._signals: dict[int, tuple[str, HistorySignals]] = {}

    async def wait_until_indexed(self, seconds: float) -> None:
        """Wait at most `seconds` for pending files; not at all for 50 or more."""
        if 0 < self._engine.indexer.open_tasks < _FEW:
            await self._engine.uploads.wait_until_indexed(seconds)

    def rank(
        self, query: Query, scope: Scope
    ) -> tuple[list[RankedFile], Mapping[int, Entry]]:
        """Return the ranked files of a scope, and index entries by blob id.

        Raises:
            IndexFailed: the index cannot be searched.
        """
        engine = self._engine
        hits = engine.store.index.search(query.terms, scope.view)
        entries = _Entries(engine.contents, {hit.blob_id for hit in hits})

        def by_blob(blob_id: int) -> FileEntry | None:
            entry = entries.get(blob_id)
            if entry is None:
                return None
            return FileEntry(blob_id, scope.path_of(entry), kind_of(entry.path))

        def by_path(path: str) -> FileEntry | None:
            blob_id = scope.blob_of(path)
            return FileEntry(blob_id, path, kind_of(path)) if blob_id else None

        return rank(hits, by_blob, query, self._signals_of(scope), by_path), entries

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
