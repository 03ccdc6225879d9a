"""Recognize damaged files and full disks, and set damaged files aside.

A file that is set aside only gets another name: nothing is deleted or replaced. Links
and anything else that is no plain file are left alone, because byok never creates them.
"""

import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_MIN_FREE = 2**16  # bytes

DATABASE_ENDINGS = ("", "-wal", "-shm")
"""The endings of the file names of one database."""


def is_damage(error: BaseException) -> bool:
    """Tell damage from a full disk, a lock or a bug, whose errors are subclasses."""
    # SQLite's message about damage may quote the file, and then not be UTF-8.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)


def is_full(path: Path, error: Exception) -> bool:
    """Tell a full disk, which SQLite may report as an I/O error of a file beside."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
        return True
    return not is_damage(error) and (shutil.disk_usage(path.parent).free < _MIN_FREE)


def set_aside(
    path: Path,
    reason: str,
    *,
    endings: Sequence[str] = DATABASE_ENDINGS,
    limit: int = 9,
) -> Path | None:
    """Rename a file that cannot be used, log it, and return the new path, if any.

    The new name ends in `.damaged-` and a number from 1 to `limit`. By default the file
    is a database, whose files beside it are renamed too. A missing file is no error.

    Raises:
        OSError: a file is no plain file, or all names are taken: nothing was renamed;
            or a file cannot be renamed.
    """
    present = [end for end in endings if os.path.lexists(_beside(path, end))]
    for end in present:
        if is_other(_beside(path, end)):
            raise OSError(f"{_beside(path, end)} is not a plain file")
    if not present:
        return None
    for name in _names_aside(path, limit):
        if not any(os.path.lexists(_beside(name, end)) for end in endings):
            break
    else:
        raise FileExistsError(
            f"{path} cannot be used ({reason}), and {limit} damaged ones lie beside it "
            "already: move them away"
        )
    for end in present:
        _beside(path, end).rename(_beside(name, end))
    _log.warning("%s cannot be used (%s); it is now %s", path, reason, name.name)
    return name


def remove_set_aside(path: Path, *, limit: int = 9) -> None:
    """Delete the plain files that `set_aside` renamed.

    Raises:
        OSError: a file cannot be deleted.
    """
    for name in _names_aside(path, limit):
        for file in (_beside(name, end) for end in DATABASE_ENDINGS):
            if is_plain(file):
                file.unlink()


def is_plain(path: Path) -> bool:
    """Tell whether there is a plain file with this name."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_other(path: Path) -> bool:
    """Tell whether a link or something else that is no plain file has this name.

    One look decides: SQLite may remove the log meanwhile, when the last user closes the
    database.
    """
    mode = _mode(path)
    return mode is not None and not stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except OSError:
        return None


def _names_aside(path: Path, limit: int) -> Iterator[Path]:
    for number in range(1, limit + 1):
        yield path.with_name(f"{path.name}.damaged-{number}")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
