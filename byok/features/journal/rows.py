"""Rows of the journal as named tuples, whose values have the types of the fields.

A flipped bit may turn a text into a blob, a number into a text, or a cost into an
absurd one. Such a value means that the file is damaged, and is never returned.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

from byok.features.journal.entry import LATEST, MOST, JournalEntry, Moment

T = TypeVar("T")
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


def whole_row() -> str:
    """Return the SQL condition of rows that are not damaged."""
    hints = get_type_hints(JournalEntry, include_extras=True)
    return " AND ".join(_CONDITIONS[kind].format(name) for name, kind in hints.items())


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
