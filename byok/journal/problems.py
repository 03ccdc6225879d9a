"""Failures and repairs in the journal: errors by code, repairs by model."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from byok.journal.file import reading
from byok.journal.reading import StoredEntry, read_rows
from byok.journal.schema import MENDED
from byok.journal.totals import whole

_EXAMPLES = 5  # requests of one code
_MOST_CODES = 100
_MOST_MODELS = 100
_LAST_MENDED = 50
_CODES = """SELECT error, count(*), max(started) FROM request
    WHERE outcome = 'failed' AND started >= ? GROUP BY error
    ORDER BY 3 DESC LIMIT ?"""
_PLACES = """SELECT DISTINCT upstream, model FROM request
    WHERE outcome = 'failed' AND started >= ? AND error = ? AND upstream <> ''
    LIMIT 10"""
_FAILED = "outcome = 'failed' AND started >= ? AND error = ?"
_ANSWERS = """SELECT upstream, model, count(*) FROM request
    WHERE model <> '' AND started >= ? GROUP BY upstream, model"""
_BY_MODEL = f"""SELECT upstream, model, count(*), total(repairs), total(dropped_calls),
    total(notices), total(loop <> ''), total(attempts > 1)
    FROM request WHERE {MENDED} AND started >= ?
    GROUP BY upstream, model
    ORDER BY total(repairs + dropped_calls + (attempts > 1)) DESC LIMIT ?"""  # noqa: S608 - our own words


class ErrorSum(NamedTuple):
    """The failures with one code; `places` are models as `upstream:model`."""

    code: str
    requests: int
    last: float
    places: tuple[str, ...]
    examples: list[StoredEntry]


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
    with reading(path) as db:
        if db is None:
            return Problems(0, [], [], [])
        answers = {
            _place(upstream, model): count
            for upstream, model, count in db.execute(_ANSWERS, (since,))
        }
        return Problems(
            sum(answers.values()),
            _errors(db, since),
            _models(db, since, answers.get),
            _last(db, f"{MENDED} AND started >= ?", [since], _LAST_MENDED),
        )


def _errors(db: sqlite3.Connection, since: float) -> list[ErrorSum]:
    rows = db.execute(_CODES, (since, _MOST_CODES)).fetchall()
    return [
        ErrorSum(
            code,
            count,
            last,
            tuple(_place(*row) for row in db.execute(_PLACES, (since, code))),
            _last(db, _FAILED, [since, code], _EXAMPLES),
        )
        for code, count, last in rows
    ]


def _models(
    db: sqlite3.Connection, since: float, answers: Callable[[str, int], int]
) -> list[MendedModel]:
    rows = db.execute(_BY_MODEL, (since, _MOST_MODELS)).fetchall()
    return [
        MendedModel(place, answers(place, 0), *map(whole, counts))
        for upstream, model, *counts in rows
        for place in [_place(upstream, model)]
    ]


def _last(
    db: sqlite3.Connection, condition: str, values: list[Any], count: int
) -> list[StoredEntry]:
    return read_rows(db, condition, values, "started DESC, id DESC", count)


def _place(upstream: str, model: str) -> str:
    return ":".join(part for part in (upstream, model) if part)
