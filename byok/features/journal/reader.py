"""Reads the journal's file, by connections that change nothing, as checked rows.

Of a partly damaged file the undamaged requests are read: one flipped bit should not
hide weeks of a journal. It may turn a text into a blob, a number into a text, or a cost
into an absurd one. Such a value means that the file is damaged, and is never returned.
"""

import logging
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from byok.core.errors import CannotStart
from byok.features.journal.entry import LATEST, MOST, JournalEntry, Moment
from byok.features.journal.schema import JOURNAL, show_requests
from byok.storage.damage import is_damage, is_full
from byok.storage.database import open_unchanged, version_of

T = TypeVar("T")
_log = logging.getLogger(__name__)
# For a file that its writer is just opening, closing or replacing.
_MAX_ATTEMPTS, _PAUSE = 5, 0.02  # seconds
_damaged: dict[Path, int] = {}  # the number of damaged requests
_MAX_SUM = 9e18
# A text or a blob is more than any number. The plus keeps SQLite from using an index.
_NUMBER = f"+{{0}} BETWEEN 0 AND {MOST}"
_CONDITIONS: dict[Any, str] = {
    str: "typeof({0}) = 'text'",
    int: _NUMBER,
    float: _NUMBER,
    Moment: f"+{{0}} BETWEEN 0 AND {LATEST:.0f}",
    int | None: f"({{0}} IS NULL OR {_NUMBER})",
    float | None: f"({{0}} IS NULL OR {_NUMBER})",
}
_TYPES = get_type_hints(JournalEntry, include_extras=True)
WHOLE_ROW = " AND ".join(
    _CONDITIONS[kind].format(name) for name, kind in _TYPES.items()
)
# An SQL hint and a condition, in the order in which they are tried after damage: all
# requests, undamaged ones, and these without the indexes, which is slow.
_ALL, _WHOLE, _UNINDEXED = ("", "1"), ("", WHOLE_ROW), ("NOT INDEXED", WHOLE_ROW)


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


def count_damaged(path: Path) -> int:
    """Return the number of damaged requests that this process found in a journal."""
    return _damaged.get(path, 0)


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
    if count != _damaged.get(path):
        _damaged[path] = count
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


# ---- Rows as named tuples, whose values have the types of the fields


def make_row(
    kind: Callable[..., T], values: Sequence[object], maximum: float = _MAX_SUM
) -> T:
    """Return a row as a named tuple of this kind, with numbers from 0 to `maximum`.

    Whole numbers may be floats, as SQL's `total` returns them. The last fields may be
    missing if they have defaults.

    Raises:
        sqlite3.DatabaseError: byok wrote no such value, so the file is damaged.
    """
    pairs = zip(_checks(kind), values, strict=False)
    return kind(*[check(value, maximum) for check, value in pairs])


def select_rows(
    db: sqlite3.Connection,
    kind: Callable[..., T],
    query: str,
    values: Sequence[object] | Mapping[str, object],
) -> Iterator[T]:
    """Yield the rows of a query as named tuples; see `make_row`.

    Raises:
        sqlite3.DatabaseError: they cannot be read, or one is damaged.
    """
    for row in db.execute(query, values):
        yield make_row(kind, row)


def read_number(
    db: sqlite3.Connection, query: str, values: Sequence[object] | Mapping[str, object]
) -> int:
    """Return the whole number that a query returns.

    Raises:
        sqlite3.DatabaseError: it cannot be read, or is damaged.
    """
    (number,) = db.execute(query, values).fetchone()
    return int(_number(number, _MAX_SUM))


@cache
def _checks(kind: Any) -> list[Callable[[Any, float], object]]:
    hints = get_type_hints(kind, include_extras=True).values()
    return [_CHECKS[hint] for hint in hints if hint in _CHECKS]


def _text(value: Any, _: float) -> str:
    if type(value) is not str:
        raise _damage("a text")
    return value


def _number(value: Any, maximum: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= maximum:
        raise _damage("a number")
    return value  # type: ignore[no-any-return]


def _damage(expected: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"a value is not {expected} that byok wrote")


_CHECKS: dict[Any, Callable[[Any, float], object]] = {
    str: _text,
    int: lambda value, maximum: int(_number(value, maximum)),
    float: _number,
    Moment: lambda value, _: _number(value, LATEST),
    int | None: lambda value, maximum: (
        value if value is None else int(_number(value, maximum))
    ),
    float | None: lambda value, maximum: (
        value if value is None else _number(value, maximum)
    ),
}
