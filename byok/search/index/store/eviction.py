"""Eviction of uploads, checkpoints and names that have not been used for long."""

import logging
import sqlite3

from byok.search.index.store import checkpoints
from byok.search.index.store.batches import Batches
from byok.search.index.store.schema import INDEXED, NAMED
from byok.storage.database import Database

_log = logging.getLogger(__name__)
_LIVE_DAYS = 30
# Down to this share of the limit, so that not every upload starts an eviction.
_ENOUGH = 0.9
# This share of the limit is for names and sets of them; clients send those again.
_NAMES_SHARE = 0.25
_NAME_BYTES = 170  # what a bare name takes, measured


def count_bytes(db: sqlite3.Connection) -> int:
    """Return the bytes of everything that clients sent: contents, names, sets."""
    contents = db.execute("SELECT coalesce(sum(bytes), 0) FROM content").fetchone()[0]
    return int(contents) + _name_bytes(db)


def _name_bytes(db: sqlite3.Connection) -> int:
    names = db.execute(
        "SELECT count(*) FROM blob WHERE state <> 1 AND state = ?", (NAMED,)
    ).fetchone()[0]
    return int(names) * _NAME_BYTES + checkpoints.count_bytes(db)


def tidy(database: Database, day: int) -> None:
    """Delete checkpoints and bare names that were not used for a month."""
    with database.writing() as db:
        _tidy_checkpoints(db, day)


def _tidy_checkpoints(db: sqlite3.Connection, day: int) -> set[int]:
    """Return the blobs that the checkpoints need which are left."""
    month_ago = day - _LIVE_DAYS
    checkpoints.drop_unused(db, month_ago)
    used = checkpoints.members_of_all(db)
    checkpoints.drop_names(db, used, month_ago)
    return used


def evict(database: Database, batches: Batches, limit: int, day: int) -> int:
    """Drop uploads that no checkpoint contains and that were not used today.

    The least recently used go first, until all that clients sent takes 90 % of `limit`
    bytes; returns how many were dropped. Before that, `tidy` runs. If names and
    checkpoints still take more than a quarter of the limit, those not used today are
    deleted, and if that is not enough, all bare names with the checkpoints that have
    them: else a flood of names would keep uploads out for a day. Runs in the writer
    thread.
    """
    with database.writing() as db:
        used = _tidy_checkpoints(db, day)
        if _name_bytes(db) > limit * _NAMES_SHARE:
            checkpoints.drop_unused(db, day)
            used = checkpoints.members_of_all(db)
            checkpoints.drop_names(db, used, day)
        if _name_bytes(db) > limit * _NAMES_SHARE:
            checkpoints.drop_bare(db)
            used = checkpoints.members_of_all(db)
            checkpoints.drop_names(db, used, day + 1)
        total = count_bytes(db)
        candidates = db.execute(
            "SELECT b.id, c.bytes FROM blob b JOIN content c ON c.blob_id = b.id "
            "WHERE b.state = ? AND b.used < ? ORDER BY b.used, b.id",
            (INDEXED, day),
        ).fetchall()
    going: list[int] = []
    for blob_id, size in candidates:
        if total <= limit * _ENOUGH:
            break
        if blob_id not in used:
            going.append(blob_id)
            total -= size
    if going:
        batches.drop_blobs(going)
        batches.flush()
        _log.info("%d unused uploads were dropped to make room", len(going))
    return len(going)
