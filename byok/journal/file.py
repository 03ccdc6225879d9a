"""The journal's file, opened for its one writer.

The journal is only a help, so a file that cannot be used is set aside under another
name, and a new one is begun with what can be read of it. A file that a later byok wrote
is left alone.
"""

import logging
import os
import sqlite3
import stat
from functools import partial
from pathlib import Path

from byok.journal.entry import JournalEntry
from byok.journal.reader import newer_data, read_whole
from byok.journal.rows import whole_row
from byok.journal.schema import VERSION, check_columns, migrate, version_of
from byok.platform.damage import is_damage, set_aside
from byok.platform.paths import make_private

_log = logging.getLogger(__name__)
_BUSY_SECONDS = 2.0
_COLUMNS = ", ".join(("id", *JournalEntry._fields))
_MARKS = ", ".join("?" * (1 + len(JournalEntry._fields)))
_COPY = f"INSERT OR IGNORE INTO request ({_COLUMNS}) VALUES ({_MARKS})"  # noqa: S608 - our own words


def open_journal(path: Path) -> sqlite3.Connection:
    """Open or create the journal, for the only process that writes it.

    Raises:
        CannotStart: `newer_data`, a later byok wrote it.
        OSError: there can be no such file.
        sqlite3.OperationalError: it is locked, or the disk is full.
    """
    make_private(path.parent)
    if not path.exists():
        set_aside(path, "its main file is gone")
    try:
        return _open(path)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return begin_anew(path, error)


def begin_anew(path: Path, error: sqlite3.Error) -> sqlite3.Connection:
    """Set a damaged journal aside, and open a new one with what is whole of it.

    Raises:
        CannotStart: as `open_journal` does.
        OSError: it cannot be set aside.
        sqlite3.OperationalError: likewise.
    """
    aside = set_aside(path, str(error))
    db = _open(path)
    if aside is None:  # somebody else moved it
        return db
    # From both ends, as rows behind a damaged page cannot be reached from before it.
    for order in ("id", "id DESC"):
        try:
            read_whole(aside, partial(_copy, db, order))
            break
        except sqlite3.DatabaseError as failure:
            _log.debug("reading %s ended early: %s", aside, failure)
    (count,) = db.execute("SELECT count(*) FROM request").fetchone()
    if count:
        _log.warning("%d requests of the damaged journal are in the new one", count)
    return db


def check_rows(db: sqlite3.Connection) -> None:
    """Check that all requests can be read, which takes a second for 200,000.

    Raises:
        sqlite3.DatabaseError: one is damaged.
    """
    damaged = f"({whole_row()}) IS NOT TRUE"
    query = f"SELECT count(*) FROM request NOT INDEXED WHERE {damaged}"  # noqa: S608 - our own words
    (count,) = db.execute(query).fetchone()
    if count:
        raise sqlite3.DatabaseError(f"{count} requests are damaged")


def _copy(db: sqlite3.Connection, order: str, damaged: sqlite3.Connection) -> None:
    """Copy requests until one cannot be read."""
    query = f"SELECT {_COLUMNS} FROM request ORDER BY {order}"  # noqa: S608 - our own words
    db.execute("BEGIN IMMEDIATE")
    try:
        db.executemany(_COPY, damaged.execute(query))
    finally:
        db.execute("COMMIT")


def _open(path: Path) -> sqlite3.Connection:
    _make_file(path)
    db = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        version = version_of(db)
        if version > VERSION:
            raise newer_data(path)
        if version == VERSION:
            check_columns(db)  # before anything is changed
        if not version:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before there are tables
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "cache_size = -500",
            "mmap_size = 0",
            "journal_size_limit = 4194304",
        ):
            db.execute(f"PRAGMA {pragma}")
        if version < VERSION:
            migrate(db)
            check_columns(db)
    except BaseException:
        db.close()
        raise
    return db


def _make_file(path: Path) -> None:
    """Create the file, or check it; only its owner may read it."""
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a plain file")
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)
