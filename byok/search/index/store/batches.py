"""Writing the index: rows and documents, in an order that survives a crash.

SQLite and tantivy cannot commit together. So the row of a blob says what may be half
done, and every change has three steps:

    adding:    row TO_INDEX,  then documents added and committed,   then row INDEXED
    removing:  row TO_REMOVE, then documents deleted and committed, then row deleted

After a kill at any moment, `recover` finds TO_INDEX and TO_REMOVE rows and repeats
their step. Adding begins with a delete, so repeating it leaves no document twice.
TO_INDEX is also what clients are told as "not searchable yet".

What was tried (kill -9, then each document compared with the rows):
- tantivy first, then SQLite: 16 of 25 kills left documents without a row, and their ids
  were later given to other files. The rows cannot show that.
- SQLite with its final state first: 25 of 25 kills left files that are never found.
- this order: 115 kills, 91 of them inconsistent before recovery, none after it.

Rules that follow from it:
- Ids are never used again (AUTOINCREMENT): documents of a deleted row may still exist.
- `put` may be called many times before one `flush`, because a tantivy commit is costly
  and a SQLite transaction is not. `_added` and `_removed` are pending for the flush.
- If tantivy fails, it has lost everything since its last commit. `lost` then makes the
  indexer put those batches again; otherwise the next flush would mark them as INDEXED
  although none of their documents exists.
- A blob that is removed and added again before a flush is taken out of `_removed`, or
  the flush would delete its new documents.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from byok.core.errors import IndexFailed
from byok.search.index.store.schema import (
    INDEXED,
    NAMED,
    TO_INDEX,
    TO_REMOVE,
    pack_spans,
)
from byok.search.index.store.tantivy_index import TantivyIndex
from byok.search.index.types import (
    FileFacts,
    IndexTask,
    ParseOutcome,
    Prepared,
    SkipReason,
    UploadTask,
    WorkspaceTask,
)
from byok.storage.database import Database, select_in

_log = logging.getLogger(__name__)
# Raise this when tokens or chunks change. Every blob is then indexed again, in the
# background, while its old documents answer. A new field of the documents must also be
# appended to older indexes (`tantivy_index.py`): an index that cannot be opened is
# replaced by an empty one.
INDEX_VERSION = 4
_UNREAD = FileFacts(-1, 0, 0, 0)  # the facts of no file, so that it is read again


class Written(NamedTuple):
    """The stored state of a workspace's file after `put`.

    `blob_id` is None if nothing of the file is indexed, for which there may be a
    `reason`; `facts` is None if the file must be read again. The worker needed
    `read_seconds` and `calculate_seconds`.
    """

    workspace_id: int
    path: str
    blob_id: int | None
    facts: FileFacts | None
    reason: SkipReason | None = None
    read_seconds: float = 0.0
    calculate_seconds: float = 0.0


class Batches:
    """Writes parsed files to database and index in batches; for the writer thread.

    `lost` tells that documents were lost because the index could not be written: their
    outcomes must be put again. `on_flushed` is called when all of them are searchable.

    `parser_crashers` are the names of file versions that crashed the parser in this
    run; the database also has those of earlier runs.
    """

    def __init__(self, database: Database, index: TantivyIndex) -> None:
        self._db = database
        self._index = index
        self.lost = False
        self.on_flushed: Callable[[], None] = lambda: None
        self.parser_crashers: set[bytes] = set()
        self._added: set[int] = set()
        self._removed: set[int] = set()

    def put(self, outcomes: Sequence[tuple[IndexTask, ParseOutcome]]) -> list[Written]:
        """Write one batch; return the new state of the workspaces' files.

        The documents are searchable after `flush`.
        """
        ready: dict[int, Prepared] = {}
        written: list[Written] = []
        with self._db.writing() as db:
            spaces = {i for (i,) in db.execute("SELECT id FROM workspace")}
            for task, outcome in outcomes:
                if isinstance(task, UploadTask):
                    self._put_upload(db, task.blob_id, outcome, ready)
                elif task.workspace_id in spaces:
                    written.append(self._put_file(db, task, outcome, ready))
                else:
                    continue  # the workspace was removed meanwhile
                if outcome.prepared:
                    name, crashed = outcome.prepared.name, outcome.plain
                    self._record_crash(db, task, name, crashed=crashed)
        with self._recording_loss():
            for blob_id, prepared in ready.items():
                self._index.remove(blob_id)
                self._index.add(blob_id, prepared)
        self._added |= ready.keys()
        return written

    def _record_crash(
        self, db: sqlite3.Connection, task: IndexTask, name: bytes, *, crashed: bool
    ) -> None:
        """Record that the parser crashed with a file version, or no longer does."""
        if crashed:
            self.parser_crashers.add(name)
            db.execute("INSERT OR IGNORE INTO parser_crasher VALUES(?)", (name,))
        elif isinstance(task, UploadTask):  # as `engine.retry_crashers` makes them
            db.execute("DELETE FROM parser_crasher WHERE name = ?", (name,))

    @contextmanager
    def _recording_loss(self) -> Iterator[None]:
        """Record that a failure lost all documents since the last commit."""
        try:
            yield
        except IndexFailed:
            self._added.clear()
            self.lost = True
            raise

    def _put_upload(
        self,
        db: sqlite3.Connection,
        blob_id: int,
        outcome: ParseOutcome,
        ready: dict[int, Prepared],
    ) -> None:
        prepared = outcome.prepared or Prepared(b"", 0, outcome.reason)
        row = db.execute(
            "UPDATE blob SET state = ?, reason = ?, spans = ?, index_version = ? "
            "WHERE id = ? AND state IN (?, ?) RETURNING id",
            (
                *(TO_INDEX, prepared.reason, pack_spans(prepared.spans)),
                *(INDEX_VERSION, blob_id, TO_INDEX, INDEXED),
            ),
        ).fetchone()
        if row:
            self._removed.discard(blob_id)
            ready[blob_id] = prepared

    def _put_file(
        self,
        db: sqlite3.Connection,
        task: WorkspaceTask,
        outcome: ParseOutcome,
        ready: dict[int, Prepared],
    ) -> Written:
        workspace_id, path, prepared = task.workspace_id, task.path, outcome.prepared
        row = db.execute(
            "SELECT f.blob_id, b.name FROM file f LEFT JOIN blob b ON b.id = f.blob_id "
            "WHERE f.workspace_id = ? AND f.path = ?",
            (workspace_id, path),
        ).fetchone()
        previous, name = row or (None, None)
        blob_id, facts = None, outcome.facts or _UNREAD
        if prepared is not None:
            blob_id, is_new = self._blob_of(db, path, prepared)
            if is_new:
                ready[blob_id] = prepared
        elif outcome.reason is None:
            blob_id = previous
            if name != task.known:  # another version was stored meanwhile: read again
                facts = _UNREAD
        db.execute(
            "INSERT OR REPLACE INTO file VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            (workspace_id, path, *facts, blob_id, outcome.reason),
        )
        if previous not in (None, blob_id):
            self._unlink(db, [previous])
        stored = None if facts is _UNREAD else facts
        seconds = (outcome.read_seconds, outcome.calculate_seconds)
        return Written(workspace_id, path, blob_id, stored, outcome.reason, *seconds)

    def _blob_of(
        self, db: sqlite3.Connection, path: str, prepared: Prepared
    ) -> tuple[int, bool]:
        """Return the blob of this version, and whether it must be indexed."""
        row = db.execute(
            "SELECT id, state FROM blob WHERE name = ?", (prepared.name,)
        ).fetchone()
        if row and row[1] == INDEXED:
            return row[0], False
        values = (
            path, prepared.size, TO_INDEX, prepared.reason,
            pack_spans(prepared.spans), INDEX_VERSION,
        )  # fmt: skip
        if row:
            self._removed.discard(row[0])
            db.execute(
                "UPDATE blob SET path = ?, size = ?, state = ?, reason = ?, spans = ?, "
                "index_version = ? WHERE id = ?",
                (*values, row[0]),
            )
            return row[0], True
        cursor = db.execute(
            "INSERT INTO blob(path, size, state, reason, spans, index_version, name) "
            "VALUES(?, ?, ?, ?, ?, ?, ?)",
            (*values, prepared.name),
        )
        return int(cursor.lastrowid or 0), True

    def _unlink(self, db: sqlite3.Connection, blob_ids: Iterable[int]) -> None:
        """Mark blobs for removal that have no file and no stored content."""
        for blob_id in blob_ids:
            row = db.execute(
                "UPDATE blob SET state = ? WHERE id = ? AND state <> ? "
                "AND NOT EXISTS(SELECT 1 FROM file WHERE blob_id = blob.id) "
                "AND NOT EXISTS(SELECT 1 FROM content WHERE blob_id = blob.id) "
                "RETURNING id",
                (TO_REMOVE, blob_id, NAMED),
            ).fetchone()
            if row:
                self._removed.add(blob_id)

    def drop_files(self, workspace_id: int, paths: Iterable[str]) -> None:
        """Remove files that are gone from a workspace."""
        with self._db.writing() as db:
            for path in paths:
                row = db.execute(
                    "DELETE FROM file WHERE workspace_id = ? AND path = ? "
                    "RETURNING blob_id",
                    (workspace_id, path),
                ).fetchone()
                if row and row[0] is not None:
                    self._unlink(db, [row[0]])

    def drop_workspace(self, workspace_id: int) -> None:
        """Remove a workspace and its files."""
        with self._db.writing() as db:
            ids = [
                blob_id
                for (blob_id,) in db.execute(
                    "SELECT DISTINCT blob_id FROM file "
                    "WHERE workspace_id = ? AND blob_id IS NOT NULL",
                    (workspace_id,),
                )
            ]
            db.execute("DELETE FROM workspace WHERE id = ?", (workspace_id,))
            self._unlink(db, ids)

    def drop_blobs(self, blob_ids: Iterable[int]) -> None:
        """Remove uploads with their content; files of workspaces stay indexed."""
        with self._db.writing() as db:
            ids = list(blob_ids)
            db.executemany("DELETE FROM content WHERE blob_id = ?", [(i,) for i in ids])
            self._unlink(db, ids)

    def flush(self) -> None:
        """Commit the documents, which makes them searchable, then mark their rows."""
        if not (self._added or self._removed):
            return
        with self._recording_loss():
            self._remove_documents(self._removed)
        with self._db.writing() as db:
            db.executemany(
                "UPDATE blob SET state = ? WHERE id = ? AND state = ?",
                [(INDEXED, blob_id, TO_INDEX) for blob_id in self._added],
            )
            delete_rows(db, self._removed, TO_REMOVE)
        self._added.clear()
        self._removed.clear()
        self.on_flushed()

    def recover(self) -> None:
        """Finish or repeat the work that a crash interrupted; runs before all else.

        After a crash, and whenever the number of chunks is wrong, the chunks of each
        blob are counted. A new index is filled from scratch.
        """
        if self._index.was_new:
            self.forget_index()
        expected = self._db.one(
            "SELECT coalesce(sum(length(spans) / 12), 0) FROM blob WHERE state = ?",
            INDEXED,
        )
        self._repair(audit=not self._db.was_clean or expected != self._index.chunks)

    def check(self) -> list[tuple[int, str]]:
        """Make rows and documents agree; return id and path of all indexed blobs.

        A damaged index is emptied and filled again.
        """
        try:
            self.flush()
        except IndexFailed as error:
            _log.warning("repairing the index: %s", error)
        self._added.clear()
        self._removed.clear()
        if self._index.is_damaged:
            self.forget_index()
        self._repair(audit=True)
        return self._db.rows("SELECT id, path FROM blob WHERE state = ?", INDEXED)

    def forget_index(self) -> None:
        """Empty the index, so that everything is indexed again."""
        self._index.clear()
        with self._db.writing() as db:
            _reset_to_unindexed(db, self._ids(INDEXED))

    def _repair(self, *, audit: bool) -> None:
        doubtful = self._ids(TO_INDEX)
        if audit:
            doubtful += self._audit()
        removed = self._ids(TO_REMOVE)
        if not doubtful and not removed:
            return
        _log.info("%d blobs are indexed again after a break", len(doubtful))
        self._remove_documents((*doubtful, *removed))
        with self._db.writing() as db:
            _reset_to_unindexed(db, doubtful)
            delete_rows(db, removed, TO_REMOVE)

    def _audit(self) -> list[int]:
        """Compare the chunk counts of rows and index; return the blobs that differ."""
        there = self._index.counts()
        due = dict(
            self._db.rows(
                "SELECT id, length(spans) / 12 FROM blob WHERE state = ?", INDEXED
            )
        )
        left_over = [blob_id for blob_id in there if blob_id not in due]
        if left_over:
            self._remove_documents(left_over)
        return [blob_id for blob_id, count in due.items() if there[blob_id] != count]

    def _remove_documents(self, blob_ids: Iterable[int]) -> None:
        for blob_id in blob_ids:
            self._index.remove(blob_id)
        self._index.commit()

    def _ids(self, state: int) -> list[int]:
        rows = self._db.rows("SELECT id FROM blob WHERE state = ?", state)
        return [blob_id for (blob_id,) in rows]


def _reset_to_unindexed(db: sqlite3.Connection, blob_ids: Collection[int]) -> None:
    """Reset blobs, so that they are indexed again from stored content or their files.

    Refused uploads have neither; they keep their reason.
    """
    rows = list(
        select_in(
            db,
            "SELECT id, EXISTS(SELECT 1 FROM content WHERE blob_id = blob.id), "
            "reason IS NOT NULL "
            "AND NOT EXISTS(SELECT 1 FROM file WHERE blob_id = blob.id) "
            "FROM blob WHERE id IN (?)",
            blob_ids,
        )
    )
    gone = [blob_id for blob_id, stored, refused in rows if not (stored or refused)]
    db.executemany(
        "UPDATE blob SET state = ?, spans = x'' WHERE id = ?",
        [
            (TO_INDEX if stored else INDEXED, blob_id)
            for blob_id, stored, refused in rows
            if stored or refused
        ],
    )
    db.executemany(
        "UPDATE file SET size = -1, blob_id = NULL WHERE blob_id = ?",
        [(blob_id,) for blob_id in gone],
    )
    delete_rows(db, gone)


def delete_rows(
    db: sqlite3.Connection, blob_ids: Iterable[int], state: int | None = None
) -> None:
    """Delete rows that still have the given state; None stands for any state.

    Rows that a client used become bare names (NAMED), because checkpoints refer to them
    by id.
    """
    ids = list(blob_ids)
    db.executemany(
        "DELETE FROM blob WHERE id = ? AND state = coalesce(?, state) AND used = 0",
        [(blob_id, state) for blob_id in ids],
    )
    db.executemany(
        "UPDATE blob SET state = ?, reason = NULL, spans = x'' "
        "WHERE id = ? AND state = coalesce(?, state)",
        [(NAMED, blob_id, state) for blob_id in ids],
    )
