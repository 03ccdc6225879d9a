"""Recovery after a crash: makes rows and index documents agree again."""

import logging
import sqlite3
from collections.abc import Collection, Iterable

from byok.search.index.store.chunk_index import ChunkIndex, remove_all
from byok.search.index.store.schema import INDEXED, NAMED, TO_INDEX, TO_REMOVE
from byok.storage.database import Database, select_in

_log = logging.getLogger(__name__)
# Raise it when tokens or chunks change. Every blob is then indexed again, in the
# background, while its old documents answer. A new field of the documents must be
# appended to older indexes too (`tantivy_index.py`): an index that cannot be opened is
# replaced by an empty one.
INDEX_VERSION = 3
_VERSION_KEY = "index_version"  # in `meta`: all blobs have it


def recover(database: Database, index: ChunkIndex) -> None:
    """Finish or repeat what a crash interrupted; runs before anything else.

    After a crash, and whenever the number of chunks is wrong, each blob's chunks are
    counted. A new index is filled again from scratch.
    """
    if index.was_new:
        forget_index(database, index)
    _repair(
        database,
        index,
        audit=not database.was_clean or _chunks_due(database) != index.chunks,
    )


def find_outdated(db: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return id and path of each blob that another version of byok indexed.

    Uploads that were refused have no content to index, and stay as they are.
    """
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_VERSION_KEY,)).fetchone()
    if row == (INDEX_VERSION,):
        return []
    return db.execute(
        "SELECT id, path FROM blob WHERE state = ? AND index_version <> ? "
        "AND (reason IS NULL OR EXISTS(SELECT 1 FROM content WHERE blob_id = blob.id) "
        "OR EXISTS(SELECT 1 FROM file WHERE blob_id = blob.id))",
        (INDEXED, INDEX_VERSION),
    ).fetchall()


def note_index_version(db: sqlite3.Connection) -> None:
    """Note that no blob is outdated, so that the next start need not look."""
    row = (_VERSION_KEY, INDEX_VERSION)
    db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", row)


def check(database: Database, index: ChunkIndex) -> list[tuple[int, str]]:
    """Repair what differs, as after a crash; return all blobs that are indexed.

    An index with damaged files is emptied first.
    """
    if index.is_damaged:
        forget_index(database, index)
    _repair(database, index, audit=True)
    rows = database.rows("SELECT id, path FROM blob WHERE state = ?", INDEXED)
    return [(blob_id, path) for blob_id, path in rows]


def _repair(database: Database, index: ChunkIndex, *, audit: bool) -> None:
    doubtful = _ids(database, TO_INDEX)
    if audit:
        doubtful += _audit(database, index)
    removed = _ids(database, TO_REMOVE)
    if not doubtful and not removed:
        return
    _log.info("%d blobs are indexed again after a break", len(doubtful))
    remove_all(index, (*doubtful, *removed))
    index.commit()
    with database.writing() as db:
        _start_over(db, doubtful)
        forget_rows(db, removed, TO_REMOVE)


def forget_index(database: Database, index: ChunkIndex) -> None:
    """Empty the index, so that everything is indexed again."""
    index.clear()
    with database.writing() as db:
        _start_over(db, _ids(database, INDEXED))
        note_index_version(db)


def _start_over(db: sqlite3.Connection, blob_ids: Collection[int]) -> None:
    """Index again from held content, or by reading the file again.

    Uploads that were refused have neither; they keep the reason.
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
    gone = [blob_id for blob_id, held, refused in rows if not held and not refused]
    db.executemany(
        "UPDATE blob SET state = ?, spans = x'' WHERE id = ?",
        [
            (TO_INDEX if held else INDEXED, blob_id)
            for blob_id, held, refused in rows
            if held or refused
        ],
    )
    db.executemany(
        "UPDATE file SET size = -1, blob_id = NULL WHERE blob_id = ?",
        [(blob_id,) for blob_id in gone],
    )
    forget_rows(db, gone)


def forget_rows(
    db: sqlite3.Connection, blob_ids: Iterable[int], state: int | None = None
) -> None:
    """Delete rows that still have the given state; None stands for any state.

    Rows that a client used stay as bare names (NAMED), because checkpoints refer to
    them by id.
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


def _audit(database: Database, index: ChunkIndex) -> list[int]:
    """Compare the chunk counts of rows and index; return the blobs that differ."""
    there = index.counts()
    due = dict(
        database.rows(
            "SELECT id, length(spans) / 12 FROM blob WHERE state = ?", INDEXED
        )
    )
    left_over = [blob_id for blob_id in there if blob_id not in due]
    if left_over:
        remove_all(index, left_over)
        index.commit()
    return [blob_id for blob_id, count in due.items() if there[blob_id] != count]


def _chunks_due(database: Database) -> object:
    return database.one(
        "SELECT coalesce(sum(length(spans) / 12), 0) FROM blob WHERE state = ?", INDEXED
    )


def _ids(database: Database, state: int) -> list[int]:
    return [i for (i,) in database.rows("SELECT id FROM blob WHERE state = ?", state)]
