"""Queries of the journal: the requests themselves, filtered or ranked.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from byok.features.journal.entry import MOST, JournalEntry
from byok.features.journal.reader import make_row, read_journal, read_number
from byok.features.journal.schema import ASKED

_COLUMNS = ", ".join(("id", *JournalEntry._fields))
HIGHEST = "SELECT coalesce(max(id), 0) FROM request"
_LAST_CHARACTER = "\U0010ffff"
# What requests may be ranked by: an SQL condition, and the column of the order. A slow
# request that failed is an error, and not among the slow ones.
LARGEST = {
    "seconds": ("seconds > 0 AND outcome <> 'failed'", "seconds"),
    "cost": ("cost > 0", "cost"),
    "failed": ("outcome = 'failed' AND model <> ''", "started"),
}


class StoredEntry(NamedTuple):
    """An entry and its number; a later one has a higher number."""

    number: int
    entry: JournalEntry


class LogFilter(Struct, frozen=True):
    """A filter of requests.

    Without `everything`, only questions to models and unsuccessful requests match.
    `errors`: only failures match. `conversation` is the prefix of an id, "" for any, or
    the whole id if it is `exact`.
    """

    errors: bool = False
    conversation: str = ""
    everything: bool = False
    exact: bool = False

    @property
    def conditions(self) -> tuple[list[str], list[object]]:
        """SQL conditions, and the values of their parameters."""
        conditions, values = list[str](), list[object]()
        if not self.everything:
            conditions.append(ASKED)
        if self.errors:
            conditions.append("outcome = 'failed'")
        if self.conversation and self.exact:
            conditions.append("conversation <> '' AND conversation = ?")
            values.append(self.conversation)
        elif self.conversation:
            conditions.append("conversation <> '' AND conversation BETWEEN ? AND ?")
            values += [self.conversation, self.conversation + _LAST_CHARACTER]
        return conditions, values


NO_FILTER = LogFilter()


def last_entries(
    path: Path, count: int, log_filter: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return the last requests, the oldest first; none without a journal."""
    return _select(path, log_filter, [], [], "id DESC", count)[::-1]


def entries_since(
    path: Path, number: int, count: int, log_filter: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return at most `count` requests with a higher number, the oldest first."""
    return _select(path, log_filter, ["id > ?"], [number], "id", count)


def entries_before(
    path: Path, number: int | None, count: int, log_filter: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return the last requests that started before that one, the latest first.

    All requests start before None; none before a deleted one, as the oldest are
    deleted.
    """
    conditions, values = [], list[object]()
    if number is not None:
        conditions = ["(started, id) < (SELECT started, id FROM request WHERE id = ?)"]
        values = [number]
    return _select(path, log_filter, conditions, values, "started DESC, id DESC", count)


def largest_entries(
    path: Path, by: str, begin: float, end: float, count: int
) -> list[StoredEntry]:
    """Return the largest of the requests that started from `begin` to before `end`.

    `by` is one of LARGEST; moments are in seconds since 1970.
    """
    condition, column = LARGEST[by]
    conditions = ["started >= ?", "started < ?", condition]
    order = f"{column} DESC, id DESC"
    return _select(path, NO_FILTER, conditions, [begin, end], order, count)


def highest_number(path: Path) -> int:
    """Return the number of the last request, 0 if there is none."""
    return read_journal(path, lambda db: read_number(db, HIGHEST, ()), 0)


def _select(
    path: Path,
    log_filter: LogFilter,
    conditions: Iterable[str],
    values: Iterable[object],
    order: str,
    count: int,
) -> list[StoredEntry]:
    filters, filter_values = log_filter.conditions
    where = " AND ".join((*conditions, *filters, "1"))
    bound = [*values, *filter_values]
    return read_journal(path, lambda db: read_rows(db, where, bound, order, count), [])


def read_rows(
    db: sqlite3.Connection,
    where: str,
    values: Iterable[object],
    order: str,
    count: int,
) -> list[StoredEntry]:
    """Return at most `count` requests that match `where`, SQL with bound `values`.

    Raises:
        sqlite3.DatabaseError: they cannot be read.
    """
    query = f"SELECT {_COLUMNS} FROM request WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608 - our own words, values are bound
    rows = db.execute(query, (*values, count))
    return [
        StoredEntry(number, make_row(JournalEntry, columns, MOST))
        for number, *columns in rows
    ]
