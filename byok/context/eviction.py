"""Making room: what nobody uses goes, what anybody uses stays."""

import logging
import sqlite3

from byok.context import checkpoints
from byok.context.batches import Batches
from byok.context.database import INDEXED, Database

_log = logging.getLogger(__name__)
# Down to this share of the limit, so that room is not made for each upload anew.
_ENOUGH = 0.9


def stored_bytes(db: sqlite3.Connection) -> int:
    """Return how many bytes the contents take."""
    return int(db.execute("SELECT coalesce(sum(bytes), 0) FROM content").fetchone()[0])


def tidy(database: Database, day: int) -> None:
    """Forget checkpoints and bare names that nobody used for a month."""
    with database.writing() as db:
        _tidied(db, day)


def _tidied(db: sqlite3.Connection, day: int) -> set[int]:
    """Return the blobs that the checkpoints need which are left."""
    checkpoints.drop_old(db, day)
    used = checkpoints.members_of_all(db)
    checkpoints.drop_names(db, used, day)
    return used


def evict(database: Database, batches: Batches, limit: int, day: int) -> int:
    """Drop uploads that no live checkpoint names and nobody asked for today.

    The least recently used go first, until the contents fit into `limit` bytes;
    returns how many went. Runs in the writer thread.
    """
    with database.writing() as db:
        used = _tidied(db, day)
        total = stored_bytes(db)
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
