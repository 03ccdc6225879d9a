"""Checkpoint rows: sets of blob names that clients refer to by an id.

`set = set(checkpoint) ∪ added − deleted`. The id is a hash of the names, so equal sets
have equal ids, also in a new database.
"""

import logging
import sqlite3
import zlib
from collections.abc import Iterable
from hashlib import sha256

from byok.search.index.store import blobs
from byok.search.index.store.batches import Batches
from byok.search.index.store.blobs import find_known, register, resolve_aliases
from byok.search.index.store.schema import INDEXED, NAMED, pack_ids, unpack_ids
from byok.storage.database import Database, select_in

_log = logging.getLogger(__name__)
_ID_PREFIX = "byok-"
_UNUSED_DAYS = 30
# An eviction goes down to this share of the limit, so that not every upload starts one.
_EVICTION_SHARE = 0.9
# The share of the limit for names and sets of names, which clients can send again.
_NAMES_SHARE = 0.25
_NAME_BYTES = 170  # of the row of a bare name, measured


def make(
    db: sqlite3.Connection,
    base: str,
    added: Iterable[bytes],
    deleted: Iterable[bytes],
    day: int,
) -> str | None:
    """Store a checkpoint inside a transaction, and return its id.

    Return None if the base is unknown. The added names are recorded as used today, so
    that their rows are kept for a while.
    """
    ids: set[int] = set()
    if base:
        members = members_of(db, base)
        if members is None:
            return None
        ids.update(members)
    new = set(register(db, added).values())
    blobs.touch(db, new, day)
    ids |= new
    ids.difference_update(entry.id for entry in find_known(db, deleted).values())
    names = sorted(
        name for (name,) in select_in(db, "SELECT name FROM blob WHERE id IN (?)", ids)
    )
    checkpoint_id = _ID_PREFIX + sha256(b"".join(names)).hexdigest()[:40]
    db.execute(
        "INSERT INTO checkpoint VALUES(?, ?, ?) "
        "ON CONFLICT(id) DO UPDATE SET members = excluded.members, "
        "used = max(used, excluded.used)",
        (checkpoint_id, pack_ids(ids), day),
    )
    return checkpoint_id


def members_of(db: sqlite3.Connection, checkpoint: str) -> set[int] | None:
    """Return the blob ids of a checkpoint, or None if it is unknown or damaged."""
    row = db.execute(
        "SELECT members FROM checkpoint WHERE id = ?", (checkpoint,)
    ).fetchone()
    try:
        return None if row is None else resolve_aliases(db, unpack_ids(row[0]))
    except (zlib.error, ValueError):
        _log.error(
            "checkpoint %s is damaged; clients send their names again", checkpoint
        )
        return None


def is_known(db: sqlite3.Connection, checkpoint: str) -> bool:
    """Tell whether a checkpoint exists."""
    sql = "SELECT 1 FROM checkpoint WHERE id = ?"
    return db.execute(sql, (checkpoint,)).fetchone() is not None


def touch(db: sqlite3.Connection, checkpoint: str, day: int) -> None:
    """Record that a checkpoint was used today."""
    db.execute(
        "UPDATE checkpoint SET used = ? WHERE id = ? AND used < ?",
        (day, checkpoint, day),
    )


def drop_incomplete(db: sqlite3.Connection) -> None:
    """Delete checkpoints with names that were never uploaded."""
    bare = {
        blob_id
        for (blob_id,) in db.execute(
            "SELECT id FROM blob WHERE state <> 1 AND state = ?", (NAMED,)
        )
    }
    checkpoints = [row[0] for row in db.execute("SELECT id FROM checkpoint")]
    incomplete = [
        (checkpoint,)
        for checkpoint in checkpoints
        if not bare.isdisjoint(members_of(db, checkpoint) or ())
    ]
    db.executemany("DELETE FROM checkpoint WHERE id = ?", incomplete)


def drop_names(db: sqlite3.Connection, needed: set[int], since: int) -> None:
    """Delete bare names that were last used before a day, except the ids `needed`."""
    rows = db.execute(
        "SELECT id FROM blob WHERE state <> 1 AND state = ? AND used < ?",
        (NAMED, since),
    )
    unused = [(blob_id,) for (blob_id,) in rows if blob_id not in needed]
    db.executemany("DELETE FROM blob WHERE id = ?", unused)


def members_of_all(db: sqlite3.Connection) -> set[int]:
    """Return all blobs that are members of checkpoints."""
    ids = [row[0] for row in db.execute("SELECT id FROM checkpoint").fetchall()]
    return set().union(*(members_of(db, checkpoint) or () for checkpoint in ids))


def count_bytes(db: sqlite3.Connection) -> int:
    """Return the bytes of all data of clients: contents, names, sets."""
    contents = db.execute("SELECT coalesce(sum(bytes), 0) FROM content").fetchone()[0]
    return int(contents) + _name_bytes(db)


def _name_bytes(db: sqlite3.Connection) -> int:
    names = db.execute(
        "SELECT count(*) FROM blob WHERE state <> 1 AND state = ?", (NAMED,)
    ).fetchone()[0]
    (sets,) = db.execute(
        "SELECT coalesce(sum(length(members) + length(id)), 0) FROM checkpoint"
    ).fetchone()
    return int(names) * _NAME_BYTES + int(sets)


def drop_unused(db: sqlite3.Connection, since: int) -> set[int]:
    """Delete checkpoints and bare names that were last used before a day.

    Return the blobs that the remaining checkpoints need.
    """
    db.execute("DELETE FROM checkpoint WHERE used < ?", (since,))
    used = members_of_all(db)
    drop_names(db, used, since)
    return used


def evict(database: Database, batches: Batches, limit: int, day: int) -> int:
    """Drop uploads that no checkpoint contains and that were not used today.

    The least recently used are dropped first, until all data of clients takes 90 % of
    `limit` bytes; return how many were dropped. Before that, checkpoints and bare names
    that were not used for a month are deleted. If names and checkpoints still take more
    than a quarter of the limit, those not used today are deleted, and if that is not
    enough, all bare names with the checkpoints that have them: otherwise a flood of
    names would keep uploads out for a day. Runs in the writer thread.
    """
    with database.writing() as db:
        used = drop_unused(db, day - _UNUSED_DAYS)
        if _name_bytes(db) > limit * _NAMES_SHARE:
            used = drop_unused(db, day)
        if _name_bytes(db) > limit * _NAMES_SHARE:
            drop_incomplete(db)
            used = members_of_all(db)
            drop_names(db, used, day + 1)
        total = count_bytes(db)
        candidates = db.execute(
            "SELECT b.id, c.bytes FROM blob b JOIN content c ON c.blob_id = b.id "
            "WHERE b.state = ? AND b.used < ? ORDER BY b.used, b.id",
            (INDEXED, day),
        ).fetchall()
    evicted: list[int] = []
    for blob_id, size in candidates:
        if total <= limit * _EVICTION_SHARE:
            break
        if blob_id not in used:
            evicted.append(blob_id)
            total -= size
    if evicted:
        batches.drop_blobs(evicted)
        batches.flush()
        _log.info("%d unused uploads were dropped to make room", len(evicted))
    return len(evicted)
