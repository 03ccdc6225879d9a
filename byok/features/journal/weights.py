"""Failures in the journal by what they ask of the user: to act, to look, or nothing.

All functions raise CannotStart if the journal cannot be read.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from byok.core.error_table import ErrorWeight, error_rows
from byok.features.journal.entry import Moment
from byok.features.journal.reader import read_journal
from byok.features.journal.reading import StoredEntry, read_rows
from byok.features.journal.rows import read_number, select_rows
from byok.features.journal.schema import MENDED

BARS = 24  # of a picture of the time in which something failed
_MOST = 500  # codes, each with an upstream and a model
_MOST_MODELS = 10
_EXAMPLES = 5  # requests of a group
_MOST_WITH_EXAMPLES = 100  # groups
_PLACE = f"cast((started - :since) * {BARS} / (:until - :since) AS INTEGER)"
# What an answer of any model of the upstream proves to be over; all else is over when
# the same model answers.
_OF_UPSTREAM = frozenset({"keys", "limits", "reach"})
# A plus keeps an index out that has no order by time.
_COUNTED = "upstream, model, count(*), min(started), max(started)"
_FAILED = f"""SELECT error, {_COUNTED} FROM request
    WHERE outcome = 'failed' AND started >= :since
    GROUP BY error, upstream, model ORDER BY 6 DESC LIMIT {_MOST}"""  # noqa: S608 - our own words
_FIRST_FAILURE = "substr(retried, 1, instr(retried || ' ', ' ') - 1)"
_WAS_RETRIED = f"{MENDED} AND attempts > 1 AND outcome = 'ok'"
_RETRIED = f"""SELECT {_FIRST_FAILURE}, {_COUNTED}
    FROM request WHERE {_WAS_RETRIED} AND started >= :since
    GROUP BY 1, upstream, model ORDER BY 6 DESC LIMIT {_MOST}"""  # noqa: S608 - our own words
_CANCELLED = f"""SELECT '', {_COUNTED} FROM request
    WHERE outcome = 'cancelled' AND started >= :since AND +model <> ''
    GROUP BY +upstream, +model ORDER BY 6 DESC LIMIT {_MOST}"""  # noqa: S608 - our own words
_BY_TIME = f"""SELECT error, upstream, {_PLACE}, count(*) FROM request
    WHERE outcome = 'failed' AND started >= :since AND started < :until
    GROUP BY 1, 2, 3"""  # noqa: S608 - our own words
_OK = "SELECT started FROM request WHERE outcome = 'ok' AND model <> ''"
_EXAMPLES_OF = {
    "failed": "outcome = 'failed' AND started >= ? AND error = ? AND upstream = ?",
    "retried": f"{_WAS_RETRIED} AND started >= ? AND {_FIRST_FAILURE} = ? "
    "AND upstream = ?",
}
_LAST_OF_MODEL = f"""{_OK} AND upstream = :upstream AND model = :model
    AND started > :first ORDER BY started DESC LIMIT 1"""
_LAST_OF_UPSTREAM = f"""{_OK} AND +upstream = :upstream
    AND started > :first ORDER BY started DESC LIMIT 1"""
_LAST = f"{_OK} AND started > :first ORDER BY started DESC LIMIT 1"
_BEFORE = """SELECT count(*) FROM request WHERE outcome = 'failed' AND error = :code
    AND upstream = :upstream AND model = :model AND started BETWEEN :since AND :last"""


class Ending(StrEnum):
    """How the requests of a group ended."""

    FAILED = "failed"
    RETRIED = "retried"  # byok asked once more, or another model, which answered
    CANCELLED = "cancelled"


class ErrorGroup(Struct, frozen=True):
    """Requests that failed with a code at an upstream, or were tried again after it.

    Times are in seconds since 1970. `cured` are those after which it answered again;
    `goes_on` says that it has not since the last one. `bars` counts them in equal parts
    of the time asked for, the oldest first. `examples` are the last of them, unless
    cancelled.
    """

    weight: ErrorWeight
    ending: Ending
    code: str
    upstream: str
    models: list[str]
    requests: int
    cured: int
    first: float
    last: float
    goes_on: bool
    bars: list[int]
    examples: Sequence[StoredEntry] = ()


class _Failure(NamedTuple):
    code: str
    upstream: str
    model: str
    requests: int
    first: Moment
    last: Moment


class _Bar(NamedTuple):
    code: str
    upstream: str
    place: int
    requests: int


class _Moment(NamedTuple):
    started: Moment


def by_weight(group: ErrorGroup) -> tuple[int, bool, float]:
    """Sort the heaviest first, of these what requests have met, then the latest."""
    return list(ErrorWeight).index(group.weight), not group.requests, -group.last


def weigh_errors(
    path: Path, since: float, until: float, upstreams: Collection[str]
) -> list[ErrorGroup]:
    """Return all groups of that time, the heaviest first, and of these the latest.

    What is wrong with none of the `upstreams` any more needs nobody.
    """

    def read(db: sqlite3.Connection) -> list[ErrorGroup]:
        bars = _count_bars(db, since, until)
        groups = [*_find_failures(db, since, upstreams, bars)]
        for ending, query in (
            (Ending.RETRIED, _RETRIED),
            (Ending.CANCELLED, _CANCELLED),
        ):
            rows = select_rows(db, _Failure, query, {"since": since})
            groups += [
                _group(ending, ErrorWeight.CURED, same, (_sum(same), False))
                for same in _gather(rows).values()
            ]
        groups.sort(key=by_weight)
        shown, rest = groups[:_MOST_WITH_EXAMPLES], groups[_MOST_WITH_EXAMPLES:]
        return [*(_add_examples(db, since, one) for one in shown), *rest]

    return read_journal(path, read, [])


def find_needs(path: Path, since: float, upstreams: Collection[str]) -> set[str]:
    """Return the codes of errors that only the user can mend, and that go on."""

    def read(db: sqlite3.Connection) -> set[str]:
        found = _find_failures(db, since, upstreams, {})
        return {one.code for one in found if one.weight is ErrorWeight.NEEDS_YOU}

    return read_journal(path, read, set())


def _find_failures(
    db: sqlite3.Connection,
    since: float,
    upstreams: Collection[str],
    bars: Mapping[tuple[str, str], list[int]],
) -> Iterator[ErrorGroup]:
    table = error_rows()
    rows = select_rows(db, _Failure, _FAILED, {"since": since})
    for (code, upstream), same in _gather(rows).items():
        row = table.get(code)
        weight = row.weight if row else ErrorWeight.LOOK
        is_of_upstream = row is not None and row.group in _OF_UPSTREAM
        cured = [_count_cured(db, since, one, is_of_upstream) for one in same]
        goes_on = any(
            after < one.requests for after, one in zip(cured, same, strict=True)
        )
        is_there = not upstream or upstream in upstreams
        if weight is ErrorWeight.NEEDS_YOU and not (goes_on and is_there):
            weight = ErrorWeight.LOOK
        outcome = sum(cured), goes_on
        known = bars.get((code, upstream))
        yield _group(Ending.FAILED, weight, same, outcome, known)


def _add_examples(
    db: sqlite3.Connection, since: float, group: ErrorGroup
) -> ErrorGroup:
    where = _EXAMPLES_OF.get(group.ending)
    if where is None:
        return group
    values = since, group.code, group.upstream
    order = "started DESC, id DESC"
    return replace(group, examples=read_rows(db, where, values, order, _EXAMPLES))


def _gather(rows: Iterable[_Failure]) -> dict[tuple[str, str], list[_Failure]]:
    found: dict[tuple[str, str], list[_Failure]] = {}
    for row in rows:
        found.setdefault((row.code, row.upstream), []).append(row)
    return found


def _sum(same: Iterable[_Failure]) -> int:
    return sum(one.requests for one in same)


def _count_cured(
    db: sqlite3.Connection, since: float, failure: _Failure, is_of_upstream: bool
) -> int:
    """Return after how many of these requests there was an answer."""
    if not failure.upstream:
        query = _LAST
    elif is_of_upstream or not failure.model:
        query = _LAST_OF_UPSTREAM
    else:
        query = _LAST_OF_MODEL
    named = {"since": since, **failure._asdict()}
    for answer in select_rows(db, _Moment, query, named):
        if answer.started > failure.last:
            return failure.requests
        return read_number(db, _BEFORE, {**named, "last": answer.started})
    return 0


def _count_bars(
    db: sqlite3.Connection, since: float, until: float
) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for row in select_rows(db, _Bar, _BY_TIME, {"since": since, "until": until}):
        counts = found.setdefault((row.code, row.upstream), [0] * BARS)
        counts[min(row.place, BARS - 1)] += row.requests
    return found


def _group(
    ending: Ending,
    weight: ErrorWeight,
    same: list[_Failure],
    outcome: tuple[int, bool],
    bars: list[int] | None = None,
) -> ErrorGroup:
    cured, goes_on = outcome
    models = [one.model for one in same if one.model]
    return ErrorGroup(
        weight,
        ending,
        same[0].code,
        same[0].upstream,
        models[:_MOST_MODELS],
        _sum(same),
        cured,
        min(one.first for one in same),
        max(one.last for one in same),
        goes_on,
        bars or [0] * BARS,
    )
