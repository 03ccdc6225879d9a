"""Reads the journal's file, by connections that change nothing.

Of a partly damaged file the undamaged requests are read: one flipped bit should not
hide weeks of a journal.
"""

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

from byok.core.errors import CannotStart
from byok.features.journal.rows import whole_row
from byok.features.journal.schema import JOURNAL, show_requests
from byok.storage.damage import is_damage, is_full
from byok.storage.database import open_unchanged, version_of

T = TypeVar("T")
_log = logging.getLogger(__name__)
# For a file that its writer is just opening, closing or replacing.
_MAX_ATTEMPTS, _PAUSE = 5, 0.02  # seconds
# An SQL hint and a condition, in the order in which they are tried after damage: all
# requests, undamaged ones, and these without the indexes, which is slow.
_ALL, _WHOLE, _UNINDEXED = ("", "1"), ("", whole_row()), ("NOT INDEXED", whole_row())
_left_out: dict[Path, int] = {}  # the number of damaged requests


def read_journal(path: Path, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
    """Return the result of `read`, which gets a connection that changes nothing.

    If `read` meets damage, it is called again for undamaged requests only. Without a
    journal, `nothing` is returned.

    Raises:
        CannotStart: the journal cannot be read; its code is `corrupt_data`,
            `storage_full` or `newer_data`.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return nothing
    if not stat.S_ISREG(mode):  # the daemon does not write there either
        raise CannotStart(
            f"The journal {path} is a link or no file.",
            code="corrupt_data",
            hint="Move it away, and restart byok if it runs (byok restart).",
        )
    try:
        return _read_undamaged(path, read, nothing)
    except sqlite3.DatabaseError as error:
        if not os.path.lexists(path):  # it was moved away meanwhile
            return nothing
        if is_full(path, error):
            raise CannotStart(
                f"The journal {path} cannot be read while the disk is full.",
                code="storage_full",
                hint="Free some disk space.",
            ) from error
        raise CannotStart(
            f"The journal {path} cannot be read: {error}.",
            code="corrupt_data",
            hint="With the first request after a restart (byok restart) byok begins a "
            "new one with what is whole. Or stop byok and move the file away.",
        ) from error


def _read_undamaged(
    path: Path, read: Callable[[sqlite3.Connection], T], nothing: T
) -> T:
    try:
        return _read(path, read, nothing)
    except sqlite3.OperationalError:  # locked, or a column is missing
        raise
    except sqlite3.DatabaseError:
        read = partial(_read_damaged, path, read)
    try:
        return _read(path, read, nothing, _WHOLE)
    except sqlite3.DatabaseError:
        return _read(path, read, nothing, _UNINDEXED)


def left_out(path: Path) -> int:
    """Return the number of damaged requests that this process found in a journal."""
    return _left_out.get(path, 0)


def read_whole(path: Path, read: Callable[[sqlite3.Connection], None]) -> None:
    """Call `read` for the undamaged requests of a journal, without its indexes.

    Raises:
        CannotStart: a later byok wrote it.
        sqlite3.DatabaseError: it cannot be read to its end.
    """
    _read(path, read, None, _UNINDEXED)


def _read(
    path: Path,
    read: Callable[[sqlite3.Connection], T],
    nothing: T,
    view: tuple[str, str] = _ALL,
) -> T:
    db, version = _open_with_retries(path)
    with closing(db):
        # An old version remains until the daemon writes.
        if view is not _ALL or version < JOURNAL.version:
            show_requests(db, version, *view)
        return read(db)


def _read_damaged(
    path: Path, read: Callable[[sqlite3.Connection], T], db: sqlite3.Connection
) -> T:
    """Read, count the damaged requests, and log that number when it changes."""
    result = read(db)
    total = "SELECT count(*) FROM main.request NOT INDEXED"
    query = f"SELECT ({total}) - (SELECT count(*) FROM request)"  # noqa: S608 - our own words
    (count,) = db.execute(query).fetchone()
    if count != _left_out.get(path):
        _left_out[path] = count
        _log.warning("%s is damaged: it is read without %d requests", path, count)
    return result


def _open_with_retries(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open a journal and return its version, too; its writer may just end or begin.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return _open(path)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                time.sleep(_PAUSE)
    return _open(path)


def _open(path: Path) -> tuple[sqlite3.Connection, int]:
    db = open_unchanged(path)
    db.text_factory = _read_text
    try:
        return db, version_of(db, path, JOURNAL)
    except BaseException:
        db.close()
        raise


def _read_text(stored: bytes) -> str:
    """Decode a text; in a damaged file it need not be UTF-8."""
    return stored.decode("utf-8", "replace")
