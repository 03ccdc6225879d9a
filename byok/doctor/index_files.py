"""Reading the index from outside: without opening it, and without changing it."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from byok.storage.database import open_unchanged

_STEPS = 100_000  # of SQLite's machine, between two looks at the clock
_ROWS = 1_000_000  # of files, at most


class WorkspaceFiles(NamedTuple):
    """What the database knows of a workspace: files, skipped ones by reason, folders.

    `folders` are those that hold files, and the ones around them up to the root.
    """

    files: int
    skipped: dict[str, int]
    folders: int


def find_damage(file: Path, seconds: float) -> str:
    """Return what is wrong with a database, "" if nothing was found in time."""
    deadline = time.monotonic() + seconds
    try:
        with closing(open_unchanged(file)) as db:
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            row = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        return "" if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT else str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if row == ("ok",) else str(row[0]).partition("\n")[0]


def workspaces_in(file: Path) -> list[str]:
    """Return the folders that were declared with `byok index add`."""
    with closing(open_unchanged(file)) as db:
        rows = db.execute("SELECT root FROM workspace WHERE kept ORDER BY id")
        return [root for (root,) in rows]


def files_of(file: Path, root: str) -> WorkspaceFiles:
    """Count what the database knows of a workspace."""
    skipped: dict[str, int] = {}
    folders: set[str] = set()
    count = 0
    sql = (
        "SELECT f.path, coalesce(b.reason, f.reason) FROM file f "
        "JOIN workspace w ON w.id = f.workspace_id "
        "LEFT JOIN blob b ON b.id = f.blob_id WHERE w.root = ? LIMIT ?"
    )
    with closing(open_unchanged(file)) as db:
        for path, reason in db.execute(sql, (root, _ROWS)):
            if reason:
                skipped[reason] = skipped.get(reason, 0) + 1
            else:
                count += 1
            _add_folders(path, folders)
    return WorkspaceFiles(count, skipped, len(folders) + 1)


def _add_folders(path: str, folders: set[str]) -> None:
    folder = path.rpartition("/")[0]
    while folder and folder not in folders:
        folders.add(folder)
        folder = folder.rpartition("/")[0]
