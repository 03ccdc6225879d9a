"""The database of the context engine: blobs, checkpoints, workspaces and their files.

Its content is data, not a cache: what a client uploaded is nowhere else. So a damaged
file is never replaced by an empty one; byok stops and says where it lies.
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

from byok.errors import ByokError

_log = logging.getLogger(__name__)
VERSION = 1
_BUSY_SECONDS = 5.0
_AT_ONCE = 500
_OPEN = "open"

# `state` of a blob: what is still to be done with it. The order of commits is: rows
# with TO_INDEX, then the lexical index, then INDEXED; TO_REMOVE, then the lexical
# index, then the rows go. So after a crash the rows say what may be half done.
TO_INDEX, INDEXED, TO_REMOVE, NAMED = 0, 1, 2, 3

_SCHEMA = """
CREATE TABLE blob(
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: old documents keep it
    name BLOB NOT NULL UNIQUE,             -- sha256(path || content)
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,                           -- why there is nothing to search in it
    spans BLOB NOT NULL DEFAULT x'',       -- first line, last line, characters: 3 x u32
    used INTEGER NOT NULL DEFAULT 0        -- day it was last asked for, since 1970
);
CREATE INDEX blob_unfinished ON blob(state) WHERE state <> 1;
CREATE TABLE content(
    blob_id INTEGER PRIMARY KEY REFERENCES blob(id) ON DELETE CASCADE,
    packed BLOB NOT NULL,                  -- zlib
    bytes INTEGER NOT NULL                 -- of `packed`
);
CREATE INDEX content_size ON content(blob_id, bytes);  -- contents are far apart
CREATE TABLE alias(                        -- names that clients made in another way
    name BLOB PRIMARY KEY,
    blob_id INTEGER NOT NULL REFERENCES blob(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX alias_blob ON alias(blob_id);
CREATE TABLE checkpoint(
    id TEXT PRIMARY KEY,
    members BLOB NOT NULL,                 -- packed blob ids
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE workspace(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL UNIQUE,
    kept INTEGER NOT NULL DEFAULT 0,       -- by `byok index add`, else by the settings
    used INTEGER NOT NULL DEFAULT 0,       -- day it was last open
    head TEXT NOT NULL DEFAULT '',         -- commit that `history` was read at
    history BLOB                           -- packed commits
);
CREATE TABLE file(
    workspace_id INTEGER NOT NULL REFERENCES workspace(id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    blob_id INTEGER REFERENCES blob(id) ON DELETE SET NULL,
    reason TEXT,
    PRIMARY KEY(workspace_id, path)
) WITHOUT ROWID;
CREATE INDEX file_blob ON file(blob_id);
CREATE TABLE killer(                       -- parsers died of these
    name BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID
"""


class NewerData(ByokError):
    """A later byok wrote the data; this one must not touch it."""

    status = 422
    code = "newer_data"


class CorruptData(ByokError):
    """The database is damaged."""

    status = 422
    code = "corrupt_data"


class Database:
    """The one writing connection; it belongs to one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Open or make the database.

        Raises:
            NewerData: a later version wrote it.
            CorruptData: it is no database, or damaged.
        """
        self.path = path
        self.was_clean = _look(path) if path.exists() else _make(path)
        self._db = _connect(path)
        try:
            with self.writing():
                self.note(_OPEN, 1)
        except BaseException:
            self._db.close()
            raise

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

    def fact(self, key: str) -> object:
        """Return a value of the table `meta`."""
        return self.one("SELECT value FROM meta WHERE key = ?", key)

    def note(self, key: str, value: object) -> None:
        """Set a value of the table `meta`, inside a transaction."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, value))

    def close(self, *, clean: bool = True) -> None:
        """Note that everything is in order, if it is, and close."""
        try:
            if clean:
                with self.writing():
                    self.note(_OPEN, 0)
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
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


def selected(
    db: sqlite3.Connection, sql: str, values: Iterable[object]
) -> Iterator[tuple[Any, ...]]:
    """Run `... IN (?)` over any number of values, a few hundred at once."""
    rest = iter(values)
    while some := list(islice(rest, _AT_ONCE)):
        yield from db.execute(sql.replace("(?)", _marks(some)), some)


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
        db.executescript(f"BEGIN;{_SCHEMA};PRAGMA user_version = {VERSION};COMMIT")
    new.replace(path)
    return True


def _look(path: Path) -> bool:
    """Tell whether a database was closed in good order, without any change to it.

    Raises:
        NewerData, CorruptData: it cannot be used.
    """
    log = path.with_name(f"{path.name}-wal")
    plain = "" if log.exists() else "&immutable=1"  # no files beside it are made
    uri = f"{path.absolute().as_uri()}?mode=ro{plain}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version > VERSION:
                raise NewerData(
                    f"{path} was written by a later version of byok.",
                    hint="Install that version again, or move the file away.",
                )
            if version == 0 or not _columns(db) >= _wanted_columns():
                raise _corrupt(path)
            row = db.execute("SELECT value FROM meta WHERE key = ?", (_OPEN,))
            clean: bool = row.fetchone() == (0,)
            if not clean and db.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise _corrupt(path)
    except sqlite3.DatabaseError as error:
        if _is_damage(error) or error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
            raise _corrupt(path) from error  # SQLITE_ERROR: another program's tables
        raise
    return clean


def _wanted_columns() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_SCHEMA)
        return _columns(db)


def _columns(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return each column with its table."""
    sql = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
    return set(db.execute(f"{sql} WHERE t.type = 'table'"))


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
        if _is_damage(error):
            raise _corrupt(path) from error
        raise
    return db


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Tell damage from a full disk, a lock or a mistake: those are subclasses."""
    return type(error) is sqlite3.DatabaseError


def _corrupt(path: Path) -> CorruptData:
    return CorruptData(
        f"The database {path} is damaged.",
        hint=f"Move it and {path.name}-wal away and start again. Then add the folders "
        "once more (byok index add); clients upload what they miss.",
    )
