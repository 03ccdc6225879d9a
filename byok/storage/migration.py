"""Steps from older versions of a database to the newest one, and the copy before them.

All steps of one start run in a single transaction with the number of the version, so a
kill at any moment leaves the old version or the new one. They are first tried on empty
tables of the same form: a database that lacks a table is damaged, and is refused before
anything in it changes.

The copy stays until the next start that succeeds, for users who want to go back to the
version of byok before. Its name holds a random token, which the database notes before
the copy is begun: so after a kill an unfinished copy is known as byok's own, and a file
that somebody else put there is never touched.
"""

import logging
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from byok.core.errors import NotReady
from byok.core.platform.paths import sync_folder
from byok.storage.damage import is_plain
from byok.storage.kind import DatabaseKind, Policy

_log = logging.getLogger(__name__)
_COPY = "old_copy"  # in `meta`: the file name of the copy


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have ended it already
            db.execute("ROLLBACK")
        raise


def rehearse(db: sqlite3.Connection, kind: DatabaseKind) -> bool:
    """Tell whether `migrate` would turn this database into the newest version.

    The steps run on empty tables in memory. Only the definitions of the tables are
    read.

    Raises:
        sqlite3.DatabaseError: not even those can be read.
    """
    definitions = db.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        try:
            for (definition,) in definitions:
                empty.execute(definition)
            _run_steps(empty, kind, _version(db))
        except sqlite3.OperationalError:  # such as: no such table
            return False
        return not kind.missing_columns(empty)


def migrate(db: sqlite3.Connection, path: Path, kind: DatabaseKind) -> bool:
    """Bring a database to the newest version; return whether it was older.

    Raises:
        sqlite3.Error, NotReady: it stays as it was.
    """
    version = _version(db)
    if version >= kind.version:
        return False
    if kind.policy is Policy.DATA:
        copy = _make_copy(db, path, version)
        _log.info("%s is copied to %s until the next start", path, copy.name)
    (keys,) = db.execute("PRAGMA foreign_keys").fetchone()
    db.execute("PRAGMA foreign_keys = OFF")  # has no effect inside a transaction
    try:
        with transaction(db):
            before = _dangling_rows(db)  # harmless until now, so no reason to refuse
            _run_steps(db, kind, version)
            if _dangling_rows(db) > before:
                raise sqlite3.IntegrityError("a step left rows that refer to none")
    finally:
        db.execute(f"PRAGMA foreign_keys = {keys}")
    _log.info("%s was migrated from version %d to %d", path, version, kind.version)
    return True


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _dangling_rows(db: sqlite3.Connection) -> int:
    return len(db.execute("PRAGMA foreign_key_check").fetchall())


def _run_steps(db: sqlite3.Connection, kind: DatabaseKind, version: int) -> None:
    for step in kind.steps:
        if step.to > version:
            step.change(db)
    db.execute(f"PRAGMA user_version = {kind.version}")


def _make_copy(db: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy a database beside itself; returns the path of the copy.

    It is complete and durable then, and only its owner can read it. One that was begun
    before is replaced.

    Raises:
        sqlite3.OperationalError, NotReady: such as a full disk; nothing is left.
    """
    copy = _noted_copy(db, path)
    if copy is None or not _remove(copy):
        copy = path.with_name(f"{path.name}.v{version}-{secrets.token_hex(8)}")
        row = (_COPY, copy.name)
        db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", row)
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(copy)) as target:
            target.execute("PRAGMA journal_mode = OFF")  # it is synced as a whole
            db.backup(target)
        with copy.open("rb+") as file:
            os.fsync(file.fileno())
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


def remove_old_copy(db: sqlite3.Connection, path: Path) -> None:
    """Remove the copy that a start before this one made, if there is one."""
    copy = _noted_copy(db, path)
    if copy is not None:
        _remove(copy)
        db.execute("DELETE FROM meta WHERE key = ?", (_COPY,))


def _noted_copy(db: sqlite3.Connection, path: Path) -> Path | None:
    """Return where the copy is, None without one; notes of other forms are ignored."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_COPY,)).fetchone()
    name = str(row[0]) if row else ""
    if re.fullmatch(rf"{re.escape(path.name)}\.v[0-9]+-[0-9a-f]{{16}}", name):
        return path.with_name(name)
    return None


def _remove(copy: Path) -> bool:
    """Remove a copy; returns whether its name is free, which a folder's is not."""
    if not os.path.lexists(copy):
        return True
    if not is_plain(copy):
        return False
    copy.unlink()
    return True
