"""Rows of the folders that users declared, and of the files in them."""

import sqlite3
from pathlib import Path


def declare(db: sqlite3.Connection, root: Path, day: int, *, keep: bool) -> int:
    """Note that a workspace was opened on this day, and return its id.

    With `keep` it stays declared until it is removed, as after `byok index add`.
    """
    row = db.execute(
        "INSERT INTO workspace(root, kept, used) VALUES(?, ?, ?) "
        "ON CONFLICT(root) DO UPDATE SET kept = max(kept, excluded.kept), "
        "used = excluded.used RETURNING id",
        (str(root), keep, day),
    ).fetchone()
    return int(row[0])


def find_id(db: sqlite3.Connection, root: Path) -> int | None:
    """Return the id of a folder that is or was followed, None for others."""
    row = db.execute("SELECT id FROM workspace WHERE root = ?", (str(root),)).fetchone()
    return None if row is None else int(row[0])


def kept_roots(db: sqlite3.Connection) -> list[Path]:
    """Return the folders that stay declared until they are removed."""
    rows = db.execute("SELECT root FROM workspace WHERE kept ORDER BY id")
    return [Path(root) for (root,) in rows]


def unused_since(db: sqlite3.Connection, day: int) -> list[int]:
    """Return the ids of folders that are not kept and were last opened before a day."""
    rows = db.execute("SELECT id FROM workspace WHERE NOT kept AND used < ?", (day,))
    return [workspace_id for (workspace_id,) in rows]


def files_of(db: sqlite3.Connection, workspace_id: int) -> dict[str, int | None]:
    """Return the paths of a workspace, each with its blob if it has one."""
    sql = "SELECT path, blob_id FROM file WHERE workspace_id = ?"
    return dict(db.execute(sql, (workspace_id,)).fetchall())
