"""Failures and repairs in the journal: errors by code, repairs by model."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byok.journal.entry import Moment
from byok.journal.reader import read_journal
from byok.journal.reading import StoredEntry, read_rows
from byok.journal.rows import select_rows
from byok.journal.schema import MENDED

_EXAMPLES = 5  # requests of one code
_MOST_CODES = 100
_MOST_MODELS = 100
_LAST_MENDED = 50
_PLACE = "upstream || iif(upstream <> '' AND model <> '', ':', '') || model"
_CODES = """SELECT error, count(*), max(started) FROM request
    WHERE outcome = 'failed' AND started >= ? GROUP BY error
    ORDER BY 3 DESC LIMIT ?"""
_PLACES = f"""SELECT DISTINCT {_PLACE} FROM request
    WHERE outcome = 'failed' AND started >= ? AND error = ? AND upstream <> ''
    LIMIT 10"""  # noqa: S608 - our own words
_FAILED = "outcome = 'failed' AND started >= ? AND error = ?"
_ANSWERS = f"""SELECT {_PLACE}, count(*) FROM request
    WHERE model <> '' AND started >= ? GROUP BY upstream, model"""  # noqa: S608 - our own words
_BY_MODEL = f"""SELECT {_PLACE}, 0, count(*), total(repairs), total(dropped_calls),
    total(notices), total(loop <> ''), total(attempts > 1)
    FROM request WHERE {MENDED} AND started >= ?
    GROUP BY upstream, model
    ORDER BY total(repairs + dropped_calls + (attempts > 1)) DESC LIMIT ?"""  # noqa: S608 - our own words


class ErrorSum(NamedTuple):
    """The failures with one code; `places` are models as `upstream:model`."""

    code: str
    requests: int
    last: Moment
    places: tuple[str, ...] = ()
    examples: Sequence[StoredEntry] = ()


class MendedModel(NamedTuple):
    """What byok repaired in answers of one model, `upstream:model` or "" for none.

    `answers` are all requests that asked it, `mended` those with anything that counts
    here. `retries` are requests that asked more than once, `loops` turns in circles.
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


class Problems(NamedTuple):
    """What went wrong since a time; the latest requests are first."""

    requests: int  # to models, whatever became of them
    errors: list[ErrorSum]
    models: list[MendedModel]
    mended: list[StoredEntry]


def find_problems(path: Path, since: float) -> Problems:
    """Return failures and repairs since then, in seconds since 1970.

    Raises:
        CannotStart: the journal cannot be read.
    """

    def read(db: sqlite3.Connection) -> Problems:
        answers = dict(select_rows(db, _Place, _ANSWERS, (since,)))
        return Problems(
            sum(answers.values()),
            _errors(db, since),
            [
                row._replace(answers=answers.get(row.model, 0))
                for row in select_rows(
                    db, MendedModel, _BY_MODEL, (since, _MOST_MODELS)
                )
            ],
            _last(db, f"{MENDED} AND started >= ?", [since], _LAST_MENDED),
        )

    return read_journal(path, read, Problems(0, [], [], []))


def _errors(db: sqlite3.Connection, since: float) -> list[ErrorSum]:
    found = select_rows(db, ErrorSum, _CODES, (since, _MOST_CODES))
    return [_add_details(db, since, row) for row in found]


def _add_details(db: sqlite3.Connection, since: float, row: ErrorSum) -> ErrorSum:
    values = [since, row.code]
    places = select_rows(db, _Place, _PLACES, values)
    return row._replace(
        places=tuple(place.name for place in places),
        examples=_last(db, _FAILED, values, _EXAMPLES),
    )


def _last(
    db: sqlite3.Connection, condition: str, values: list[Any], count: int
) -> list[StoredEntry]:
    return read_rows(db, condition, values, "started DESC, id DESC", count)
