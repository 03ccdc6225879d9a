"""The copy of a database that is made before it is migrated.

It stays until the next start that succeeds, for users who want to go back to the
version of byok before. Its name holds a random token, which the database notes before
the copy is begun: so after a kill an unfinished copy is known as byok's own, and a file
that somebody else put there is never touched.
"""

import os
import re
import secrets
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from byok.errors import NotReady
from byok.platform.paths import sync_folder

_KEY = "old_copy"  # in `meta`: the file name of the copy


def make_copy(db: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy a database beside itself; returns the path of the copy.

    It is complete and durable then, and only its owner can read it. One that was begun
    before is replaced.

    Raises:
        sqlite3.OperationalError, NotReady: such as a full disk; nothing is left.
    """
    copy = _noted_copy(db, path)
    if copy is None or not _remove(copy):
        copy = _note_copy(db, path, version)
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(copy)) as target:
            target.execute("PRAGMA journal_mode = OFF")  # it is synced as a whole
            db.backup(target)
        _sync(copy)
        sync_folder(path.parent)
    except OSError as error:
        _remove(copy)
        raise NotReady(
            f"The database cannot be copied before it is migrated: {error.strerror}."
        ) from error
    except BaseException:
        _remove(copy)
        raise
    return copy


def remove_copy(db: sqlite3.Connection, path: Path) -> None:
    """Remove the copy that a start before this one made, if there is one."""
    copy = _noted_copy(db, path)
    if copy is not None:
        _remove(copy)
        db.execute("DELETE FROM meta WHERE key = ?", (_KEY,))


def _note_copy(db: sqlite3.Connection, path: Path, version: int) -> Path:
    name = f"{path.name}.v{version}-{secrets.token_hex(8)}"
    db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (_KEY, name))
    return path.with_name(name)


def _noted_copy(db: sqlite3.Connection, path: Path) -> Path | None:
    """Return where the copy is, None without one; notes of other forms are ignored."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
    name = str(row[0]) if row else ""
    if re.fullmatch(rf"{re.escape(path.name)}\.v[0-9]+-[0-9a-f]{{16}}", name):
        return path.with_name(name)
    return None


def _remove(copy: Path) -> bool:
    """Remove a copy; returns whether its name is free, which a folder's is not."""
    if not os.path.lexists(copy):
        return True
    if not stat.S_ISREG(copy.lstat().st_mode):
        return False
    copy.unlink()
    return True


def _sync(copy: Path) -> None:
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
