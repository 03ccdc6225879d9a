"""Rows of the journal as named tuples, whose values are what their fields say.

A flipped bit makes a text a blob, a number a text, or a sum of money that nobody has.
Such a value is damage of the file; it never comes out of this room.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

from byok.features.journal.entry import LATEST, MOST, JournalEntry, Moment

T = TypeVar("T")
_MOST_SUM = 9e18


def make_row(
    kind: Callable[..., T], values: Sequence[object], most: float = _MOST_SUM
) -> T:
    """Return a row as a named tuple of this kind, with numbers from 0 to `most`.

    Whole numbers may be floating-point ones, as SQL's `total` makes them. The last
    fields may be missing where they have defaults.

    Raises:
        sqlite3.DatabaseError: byok wrote no such value, so the file is damaged.
    """
    pairs = zip(_checks(kind), values, strict=False)
    return kind(*[check(value, most) for check, value in pairs])


def select_rows(
    db: sqlite3.Connection,
    kind: Callable[..., T],
    query: str,
    values: Sequence[object] | Mapping[str, object],
) -> Iterator[T]:
    """Give the rows that SQL finds, as `make_row` makes them.

    Raises:
        sqlite3.DatabaseError: they cannot be read, or one is damaged.
    """
    for row in db.execute(query, values):
        yield make_row(kind, row)


def read_number(
    db: sqlite3.Connection, query: str, values: Sequence[object] | Mapping[str, object]
) -> int:
    """Return the whole number that SQL finds.

    Raises:
        sqlite3.DatabaseError: it cannot be read, or is damaged.
    """
    (found,) = db.execute(query, values).fetchone()
    return int(_number(found, _MOST_SUM))


def whole_row() -> str:
    """Return the condition, in SQL, of rows that make an entry."""
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


def _number(value: Any, most: float) -> float:
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise _damage("a number")
    return value  # type: ignore[no-any-return]


def _damage(wanted: str) -> sqlite3.DatabaseError:
    return sqlite3.DatabaseError(f"a value is not {wanted} that byok wrote")


_CHECKS: dict[Any, Callable[[Any, float], object]] = {
    str: _text,
    int: lambda value, most: int(_number(value, most)),
    float: _number,
    Moment: lambda value, _: _number(value, LATEST),
    int | None: lambda value, most: (
        value if value is None else int(_number(value, most))
    ),
    float | None: lambda value, most: value if value is None else _number(value, most),
}
# A text or a blob is more than any number. The plus keeps indexes out of it.
_NUMBER = f"+{{0}} BETWEEN 0 AND {MOST}"
_CONDITIONS: dict[Any, str] = {
    str: "typeof({0}) = 'text'",
    int: _NUMBER,
    float: _NUMBER,
    Moment: f"+{{0}} BETWEEN 0 AND {LATEST:.0f}",
    int | None: f"({{0}} IS NULL OR {_NUMBER})",
    float | None: f"({{0}} IS NULL OR {_NUMBER})",
}
