"""Queries of the journal: requests and repairs.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from byok.features.journal.entry import MOST, JournalEntry
from byok.features.journal.reader import read_journal
from byok.features.journal.rows import make_row, read_number, select_rows
from byok.features.journal.schema import ASKED, MENDED, MODEL_NAME

_COLUMNS = ", ".join(("id", *JournalEntry._fields))
HIGHEST = "SELECT coalesce(max(id), 0) FROM request"
_LAST_CHARACTER = "\U0010ffff"


class StoredEntry(NamedTuple):
    """An entry and its number; a later one has a higher number."""

    number: int
    entry: JournalEntry


class LogFilter(Struct, frozen=True):
    """Which requests are shown.

    Without `everything` these are questions to models and what did not end well.
    `errors`: only failures; `conversation` is the start of an id, "" for any,
    and the whole id if it is `exact`.
    """

    errors: bool = False
    conversation: str = ""
    everything: bool = False
    exact: bool = False

    @property
    def conditions(self) -> tuple[list[str], list[object]]:
        """Return conditions for SQL, and the values of their marks."""
        found, values = list[str](), list[object]()
        if not self.everything:
            found.append(ASKED)
        if self.errors:
            found.append("outcome = 'failed'")
        if self.conversation and self.exact:
            found.append("conversation <> '' AND conversation = ?")
            values.append(self.conversation)
        elif self.conversation:
            found.append("conversation <> '' AND conversation BETWEEN ? AND ?")
            values += [self.conversation, self.conversation + _LAST_CHARACTER]
        return found, values


NO_FILTER = LogFilter()


def last_entries(
    path: Path, count: int, wanted: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return the last requests, the oldest first; none without a journal."""
    return _select(path, wanted, [], [], "id DESC", count)[::-1]


def entries_since(
    path: Path, number: int, count: int, wanted: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return at most `count` requests with a higher number, the oldest first."""
    return _select(path, wanted, ["id > ?"], [number], "id", count)


def entries_before(
    path: Path, number: int | None, count: int, wanted: LogFilter = NO_FILTER
) -> list[StoredEntry]:
    """Return the last requests that started before that one, the latest first.

    All requests start before None; none before one that is gone, as the oldest go.
    """
    before, values = [], list[object]()
    if number is not None:
        before = ["(started, id) < (SELECT started, id FROM request WHERE id = ?)"]
        values = [number]
    return _select(path, wanted, before, values, "started DESC, id DESC", count)


# Our own words in SQL: what stands out, and what of it comes first. What failed after a
# long time is not among the slow ones: it is an error.
LARGEST = {
    "seconds": ("seconds > 0 AND outcome <> 'failed'", "seconds"),
    "cost": ("cost > 0", "cost"),
    "failed": ("outcome = 'failed' AND model <> ''", "started"),
}


def largest_entries(
    path: Path, by: str, begin: float, end: float, count: int
) -> list[StoredEntry]:
    """Return what stands out of the requests that started from `begin` to before `end`.

    `by` is one of LARGEST; moments are in seconds since 1970.
    """
    condition, first = LARGEST[by]
    conditions = ["started >= ?", "started < ?", condition]
    order = f"{first} DESC, id DESC"
    return _select(path, NO_FILTER, conditions, [begin, end], order, count)


def highest_number(path: Path) -> int:
    """Return the number of the last request, 0 if there is none."""
    return read_journal(path, lambda db: read_number(db, HIGHEST, ()), 0)


def _select(
    path: Path,
    wanted: LogFilter,
    conditions: Iterable[str],
    values: Iterable[object],
    order: str,
    count: int,
) -> list[StoredEntry]:
    more, more_values = wanted.conditions
    where = " AND ".join((*conditions, *more, "1"))
    bound = [*values, *more_values]
    return read_journal(path, lambda db: read_rows(db, where, bound, order, count), [])


def read_rows(
    db: sqlite3.Connection,
    where: str,
    values: Iterable[object],
    order: str,
    count: int,
) -> list[StoredEntry]:
    """Return at most `count` requests that fulfil `where`, SQL with marks for `values`.

    Raises:
        sqlite3.DatabaseError: they cannot be read.
    """
    query = f"SELECT {_COLUMNS} FROM request WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608 - our own words, values are bound
    rows = db.execute(query, (*values, count))
    return [
        StoredEntry(number, make_row(JournalEntry, columns, MOST))
        for number, *columns in rows
    ]


# Repairs in the journal, by model; failures are in `weights.py`.


_MOST_MODELS = 100
_LAST_MENDED = 50
_PLACE = f"iif(upstream <> '' AND model <> '', {MODEL_NAME}, upstream || model)"
_ANSWERS = f"""SELECT {_PLACE}, count(*) FROM request
    WHERE model <> '' AND started >= ? GROUP BY upstream, model"""  # noqa: S608 - our own words
_BY_MODEL = f"""SELECT {_PLACE}, 0, count(*), total(repairs), total(dropped_calls),
    total(notices), total(loop <> ''), total(max(0, attempts - 1))
    FROM request WHERE {MENDED} AND started >= ?
    GROUP BY upstream, model
    ORDER BY total(repairs + dropped_calls + (attempts > 1)) DESC LIMIT ?"""  # noqa: S608 - our own words


class MendedModel(NamedTuple):
    """What byok repaired in answers of one model, its full name or "" for none.

    `answers` are all requests that asked it, `mended` those with anything that counts
    here. `retries` are how often was asked once more, `loops` turns in circles.
    """

    model: str
    answers: int
    mended: int
    repairs: int
    dropped_calls: int
    notices: int
    loops: int
    retries: int


class _Place(NamedTuple):
    name: str
    answers: int = 0


class Mended(NamedTuple):
    """What byok repaired since a time; the latest requests are first."""

    requests: int  # to models, whatever became of them
    models: list[MendedModel]
    latest: list[StoredEntry]


def find_mended(path: Path, since: float) -> Mended:
    """Return repairs since then, in seconds since 1970."""

    def read(db: sqlite3.Connection) -> Mended:
        answers = dict(select_rows(db, _Place, _ANSWERS, (since,)))
        where, order = f"{MENDED} AND started >= ?", "started DESC, id DESC"
        return Mended(
            sum(answers.values()),
            [
                row._replace(answers=answers.get(row.model, 0))
                for row in select_rows(
                    db, MendedModel, _BY_MODEL, (since, _MOST_MODELS)
                )
            ],
            read_rows(db, where, [since], order, _LAST_MENDED),
        )

    return read_journal(path, read, Mended(0, [], []))
