"""Opens the SQLite database: checks it, migrates it, runs transactions.

A damaged file is refused here and left as it is; the store sets it aside and begins a
new one (`store.py`).
"""

import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from byok.errors import CannotStart, DataDamaged
from byok.index.store.migrations import migrate, rehearse, version_of
from byok.index.store.old_copy import make_copy, remove_copy
from byok.index.store.schema import VERSION, create_tables, missing_columns
from byok.platform.damage import is_damage

_log = logging.getLogger(__name__)
_BUSY_SECONDS = 5.0
_AT_ONCE = 500
_OPEN = "open"

# `state` of a blob: what is still to be done with it. The order of commits is: rows
# with TO_INDEX, then the lexical index, then INDEXED; TO_REMOVE, then the lexical
# index, then the rows go. So after a crash the rows say what may be half done.
TO_INDEX, INDEXED, TO_REMOVE, NAMED = 0, 1, 2, 3


class Database:
    """The only connection that writes; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open, migrate or create the database.

        Raises:
            CannotStart: `newer_data`, a later version wrote it; `corrupt_data`, it
                is no database, or damaged.
            NotReady: there is no room for the copy that a migration needs.
        """
        self.path = path
        self.was_clean = _look(path) if path.exists() else _make(path)
        self._db = _connect(path)
        self._was_migrated = False
        try:
            self._migrate()
            with self.writing():
                self.note(_OPEN, 1)
        except BaseException:
            self._db.close()
            raise

    def _migrate(self) -> None:
        version = version_of(self._db)
        if version < VERSION:
            copy = make_copy(self._db, self.path, version)
            try:
                migrate(self._db)
            except sqlite3.DatabaseError as error:
                if is_damage(error):
                    raise _corrupt(self.path) from error
                raise
            self._was_migrated = True
            _log.info(
                "%s was migrated from version %d to %d; the old one is %s until the "
                "next start", self.path, version, VERSION, copy.name,
            )  # fmt: skip

    def forget_old_copy(self) -> None:
        """Remove the copy from before a migration, unless this start made it."""
        if not self._was_migrated:
            remove_copy(self._db, self.path)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one durable transaction."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield self._db
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended it already
                self._db.execute("ROLLBACK")
            raise

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._db.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> object:
        """Return the first value of the first row, or None."""
        row = self._db.execute(sql, values).fetchone()
        return row[0] if row else None

    def note(self, key: str, value: object) -> None:
        """Set a value of the table `meta`, inside a transaction."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` notes that no recovery is needed at the next start."""
        try:
            if clean:
                with self.writing():
                    self.note(_OPEN, 0)
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.DatabaseError as error:
            _log.error("%s is checked at the next start: %s", self.path, error)
        finally:
            self._db.close()


def today() -> int:
    """Return the day, as the columns `used` count it."""
    return int(time.time()) // 86_400


def read_only(path: Path) -> sqlite3.Connection:
    """Open a connection that only reads; for one thread."""
    db = _connect(path)
    db.execute("PRAGMA query_only = ON")
    return db


def select_in(
    db: sqlite3.Connection,
    sql: str,
    values: Iterable[object],
    before: Sequence[object] = (),
) -> Iterator[tuple[Any, ...]]:
    """Run `... IN (?)` over any number of values, a few hundred at once.

    `before` are the values of the marks that stand before it.
    """
    rest = iter(values)
    while some := list(islice(rest, _AT_ONCE)):
        yield from db.execute(sql.replace("(?)", _marks(some)), (*before, *some))


def _marks(values: Sequence[object]) -> str:
    return f"({','.join('?' * len(values))})"


def _make(path: Path) -> bool:
    """Write an empty database and name it when it is whole.

    So an empty file is damage. The log of a database that was moved away would be
    played into this one. It may hold what is nowhere else, so it is put aside.
    """
    log = path.with_name(f"{path.name}-wal")
    if os.path.lexists(log):
        aside = log.with_name(f"{log.name}.old")
        log.replace(aside)
        _log.warning("%s belongs to a database that is gone: it is %s now", log, aside)
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new)) as db:
        create_tables(db)
    new.replace(path)
    return True


def _look(path: Path) -> bool:
    """Tell whether a database was closed in good order, without any change to it.

    Raises:
        CannotStart: it cannot be used.
    """
    try:
        with closing(_open_unchanged(path)) as db:
            db.text_factory = bytes.decode  # sqlite3's own error says nothing of damage
            version = version_of(db)
            if version > VERSION:
                raise newer_data(path)
            is_old = 0 < version < VERSION
            if not (rehearse(db) if is_old else version and not missing_columns(db)):
                raise _corrupt(path)
            row = db.execute("SELECT value FROM meta WHERE key = ?", (_OPEN,))
            clean: bool = row.fetchone() == (0,)
            doubtful = is_old or not clean
            if doubtful and db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise _corrupt(path)
    except UnicodeDecodeError as error:  # in the schema, or a message that quotes it
        raise _corrupt(path) from error
    except sqlite3.DatabaseError as error:
        if is_damage(error) or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            raise _corrupt(path) from error  # SQLITE_ERROR: another program's tables
        raise
    return clean


def _open_unchanged(path: Path) -> sqlite3.Connection:
    log = path.with_name(f"{path.name}-wal")
    plain = "" if log.exists() else "&immutable=1"  # no files beside it are made
    uri = f"{path.absolute().as_uri()}?mode=ro{plain}"
    return sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)


def refuse_newer(path: Path) -> None:
    """Refuse a database of a later byok before any file beside it is touched.

    Whatever else is wrong with the file shows when it is opened.

    Raises:
        CannotStart: `newer_data`.
    """
    if not path.exists():
        return
    try:
        with closing(_open_unchanged(path)) as db:
            version = version_of(db)
    except sqlite3.DatabaseError as error:
        _log.debug("%s cannot be read yet: %s", path, error)
        return
    if version > VERSION:
        raise newer_data(path)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "cache_size = -8000",
            "mmap_size = 0",
        ):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.DatabaseError as error:
        db.close()
        if is_damage(error):
            raise _corrupt(path) from error
        raise
    return db


def newer_data(path: Path) -> CannotStart:
    """Return the error for a file that a later byok wrote."""
    return CannotStart(
        f"{path} was written by a later version of byok.",
        code="newer_data",
        status=422,
        hint="Install that version again, or move the file away.",
    )


def _corrupt(path: Path) -> DataDamaged:
    return DataDamaged(
        f"The database {path} is damaged.",
        hint=f"Move it and {path.name}-wal away and start again. Then add the folders "
        "once more (byok index add); clients upload what they miss.",
    )
