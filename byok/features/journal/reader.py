"""Reads the journal's file, by connections that change nothing.

Of a file that is partly damaged what is whole is read: the journal is only a help, and
weeks of it should not be out of sight for one bit.
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
# To read what its writer opens, closes or begins anew in this moment.
_TRIES, _PAUSE = 5, 0.02
# How requests are read, until damage is no longer met: all; only those that are whole;
# these without the indexes, which takes long where there are many.
_ALL, _WHOLE, _UNINDEXED = ("", "1"), ("", whole_row()), ("NOT INDEXED", whole_row())
_left_out: dict[Path, int] = {}


def read_journal(path: Path, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
    """Return what `read` gets by a connection that changes nothing.

    If it meets damage, it is called again with what is whole. Without a journal,
    `nothing` is returned.

    Raises:
        CannotStart: `corrupt_data`, `storage_full` or `newer_data`, it cannot be read.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return nothing
    if not stat.S_ISREG(mode):  # nor does the daemon write there
        raise CannotStart(
            f"The journal {path} is a link or no file.",
            code="corrupt_data",
            hint="Move it away, and restart byok if it runs (byok restart).",
        )
    try:
        return _read_what_is_whole(path, read, nothing)
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


def _read_what_is_whole(
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
    """Return how many requests were damaged when this process last met one there."""
    return _left_out.get(path, 0)


def read_whole(path: Path, read: Callable[[sqlite3.Connection], None]) -> None:
    """Let `read` read what is whole of a damaged journal, without its indexes.

    Raises:
        CannotStart: a later byok wrote it.
        sqlite3.DatabaseError: it cannot be read to its end.
    """
    _read(path, read, None, _UNINDEXED)


def _read(
    path: Path,
    read: Callable[[sqlite3.Connection], T],
    nothing: T,
    shown: tuple[str, str] = _ALL,
) -> T:
    db, version = _open_to_read(path)
    with closing(db):
        if shown is not _ALL or version < JOURNAL.version:  # until the daemon writes
            show_requests(db, version, *shown)
        return read(db)


def _read_damaged(
    path: Path, read: Callable[[sqlite3.Connection], T], db: sqlite3.Connection
) -> T:
    """Read, count what was left out, and say it in the log when that changes."""
    found = read(db)
    all_of_them = "SELECT count(*) FROM main.request NOT INDEXED"
    query = f"SELECT ({all_of_them}) - (SELECT count(*) FROM request)"  # noqa: S608 - our own words
    (count,) = db.execute(query).fetchone()
    if count != _left_out.get(path):
        _left_out[path] = count
        _log.warning("%s is damaged: it is read without %d requests", path, count)
    return found


def _open_to_read(path: Path) -> tuple[sqlite3.Connection, int]:
    """Open a journal, and return its version too; its writer may just end or begin.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    for _ in range(_TRIES - 1):
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
    """Return a text; what a damaged file has in it need not be UTF-8."""
    return stored.decode("utf-8", "replace")
