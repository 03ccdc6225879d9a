"""Files of byok's own that are damaged or on a full disk, and how they are set aside.

What is set aside only gets another name. Nothing is deleted or replaced by that, and a
link or whatever else is no file is left alone, because byok never made it.
"""

import logging
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_log = logging.getLogger(__name__)
_LEAST_BYTES = 2**16

DATABASE_ENDINGS = ("", "-wal", "-shm")
"""How the names of the files of a database end."""


def is_damage(error: BaseException) -> bool:
    """Tell damage from a full disk, a lock or a mistake: those are subclasses."""
    # A message about damage may quote it, and not be UTF-8 then.
    return type(error) is sqlite3.DatabaseError or isinstance(error, UnicodeDecodeError)


def is_full(path: Path, error: Exception) -> bool:
    """Tell a full disk; where it hinders the file beside, SQLite only knows of I/O."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
        return True
    return not is_damage(error) and (shutil.disk_usage(path.parent).free < _LEAST_BYTES)


def set_aside(
    path: Path, why: str, *, endings: Sequence[str] = DATABASE_ENDINGS, most: int = 9
) -> Path | None:
    """Give a file that cannot be used another name, return it, and say so in the log.

    The name then ends in `.damaged-1`, at most in `.damaged-` and `most`. By default it
    is a database, whose files beside it get the same name. No file is no error.

    Raises:
        OSError: one is a link or no plain file, or all names are taken, and nothing was
            renamed; or one cannot be renamed.
    """
    present = [end for end in endings if os.path.lexists(_beside(path, end))]
    for end in present:
        if is_other(_beside(path, end)):
            raise OSError(f"{_beside(path, end)} is not a plain file")
    if not present:
        return None
    for name in _asides(path, most):
        if not any(os.path.lexists(_beside(name, end)) for end in endings):
            break
    else:
        raise FileExistsError(
            f"{path} cannot be used ({why}), and {most} damaged ones lie beside it "
            "already: move them away"
        )
    for end in present:
        _beside(path, end).rename(_beside(name, end))
    _log.warning("%s cannot be used (%s); it is now %s", path, why, name.name)
    return name


def remove_set_aside(path: Path, *, most: int = 9) -> None:
    """Delete what `set_aside` renamed; what is a link or no plain file stays.

    Raises:
        OSError: one cannot be deleted.
    """
    for name in _asides(path, most):
        for file in (_beside(name, end) for end in DATABASE_ENDINGS):
            if is_plain(file):
                file.unlink()


def is_plain(path: Path) -> bool:
    """Tell whether there is a file, and no link, that can be seen."""
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_other(path: Path) -> bool:
    """Tell whether what has this name is a link or no plain file; nothing is not.

    It looks once: SQLite removes the log when the last one closes the database.
    """
    mode = _mode(path)
    return mode is not None and not stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except OSError:
        return None


def _asides(path: Path, most: int) -> Iterator[Path]:
    for number in range(1, most + 1):
        yield path.with_name(f"{path.name}.damaged-{number}")


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
