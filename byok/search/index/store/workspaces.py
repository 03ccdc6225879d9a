"""Rows of the folders that users declared, and of the files in them."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from byok.storage.database import open_unchanged

_log = logging.getLogger(__name__)


def declare(db: sqlite3.Connection, root: Path, day: int, *, permanent: bool) -> int:
    """Record that a workspace was opened on a day, and return its id.

    A `permanent` one, as after `byok index add`, is followed until it is removed.
    """
    row = db.execute(
        "INSERT INTO workspace(root, kept, used) VALUES(?, ?, ?) "
        "ON CONFLICT(root) DO UPDATE SET kept = max(kept, excluded.kept), "
        "used = excluded.used RETURNING id",
        (str(root), permanent, day),
    ).fetchone()
    return int(row[0])


def permanent_roots(db: sqlite3.Connection) -> list[Path]:
    """Return the folders that are followed until they are removed."""
    rows = db.execute("SELECT root FROM workspace WHERE kept ORDER BY id")
    return [Path(root) for (root,) in rows]


def roots_in(database: Path) -> list[Path]:
    """Return all folders that are or were followed, also while another process writes.

    Without a database, or if it cannot be read, there are none.
    """
    if not database.exists():
        return []
    try:
        with closing(open_unchanged(database)) as db:
            return [Path(root) for (root,) in db.execute("SELECT root FROM workspace")]
    except sqlite3.Error as error:
        _log.warning("the workspaces in %s are not known: %s", database, error)
        return []
