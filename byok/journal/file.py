"""The journal's file: opened for its one writer, or to be read by anybody.

The journal is only a help, so a file that cannot be used is set aside under another
name, and a new one is begun. A file that a later byok wrote is left alone.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from byok.errors import CannotStart
from byok.journal.schema import (
    VERSION,
    check_columns,
    migrate,
    show_as_newest,
    version_of,
)
from byok.platform.damage import is_damage, set_aside
from byok.platform.paths import make_private

_BUSY_SECONDS = 2.0
_TRIES = 5  # to read what its writer opens or closes in this moment


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
        set_aside(path, str(error))
    return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    _make_file(path)
    db = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        version = version_of(db)
        if version > VERSION:
            raise _newer(path)
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


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Give a connection that changes nothing; None if there is no journal.

    Raises:
        CannotStart: `corrupt_data` or `newer_data`, it cannot be read.
    """
    if not path.exists():
        yield None
        return
    try:
        db, version = _open_to_read(path)
        with closing(db):
            if version > VERSION:
                raise _newer(path)
            if 0 < version < VERSION:  # until the daemon writes
                show_as_newest(db, version)
            yield db if version else None
    except sqlite3.DatabaseError as error:
        raise CannotStart(
            f"The journal {path} cannot be read: {error}.",
            code="corrupt_data",
            hint="If that stays so, stop byok and move the file away.",
        ) from error


def _open_to_read(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open a journal, and return its version too; its writer may just end or begin.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    for left in range(_TRIES - 1, -1, -1):
        # Without its log a journal is at rest, and no files beside it need be made.
        plain = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
        uri = f"{path.absolute().as_uri()}?mode=ro{plain}"
        db = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS)
        try:
            return db, version_of(db)
        except sqlite3.DatabaseError:
            db.close()
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def _newer(path: Path) -> CannotStart:
    return CannotStart(
        f"The journal {path} was written by a later version of byok.",
        code="newer_data",
        hint="Use that version, or move the file away.",
    )
