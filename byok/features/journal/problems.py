"""Problems in the journal: failures by what the user should do, and byok's repairs.

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
from byok.features.journal.reader import read_journal, read_number, select_rows
from byok.features.journal.requests import StoredEntry, read_rows
from byok.features.journal.schema import MENDED, MODEL_NAME

# All SQL here is byok's own text.
BARS = 24  # of a chart of the failures over time
_MAX_ROWS = 500  # a row has a code, an upstream and a model
_MAX_MODELS = 10
_MAX_EXAMPLES = 5  # requests of a group
_MAX_GROUPS_WITH_EXAMPLES = 100
_BAR = f"cast((started - :since) * {BARS} / (:until - :since) AS INTEGER)"
# Groups of errors that are over when any model of the upstream answers; other errors
# are over when the same model answers.
_UPSTREAM_GROUPS = frozenset({"keys", "limits", "reach"})
# In these queries a plus keeps SQLite from using an index that is not ordered by time.
_COUNTED = "upstream, model, count(*), min(started), max(started)"
_FAILED = f"""SELECT error, {_COUNTED} FROM request
    WHERE outcome = 'failed' AND started >= :since
    GROUP BY error, upstream, model ORDER BY 6 DESC LIMIT {_MAX_ROWS}"""  # noqa: S608 - our own words
_FIRST_FAILURE = "substr(retried, 1, instr(retried || ' ', ' ') - 1)"
_WAS_RETRIED = f"{MENDED} AND attempts > 1 AND outcome = 'ok'"
_RETRIED = f"""SELECT {_FIRST_FAILURE}, {_COUNTED}
    FROM request WHERE {_WAS_RETRIED} AND started >= :since
    GROUP BY 1, upstream, model ORDER BY 6 DESC LIMIT {_MAX_ROWS}"""  # noqa: S608 - our own words
_CANCELLED = f"""SELECT '', {_COUNTED} FROM request
    WHERE outcome = 'cancelled' AND started >= :since AND +model <> ''
    GROUP BY +upstream, +model ORDER BY 6 DESC LIMIT {_MAX_ROWS}"""  # noqa: S608 - our own words
_BY_TIME = f"""SELECT error, upstream, {_BAR}, count(*) FROM request
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
    RETRIED = "retried"  # and then answered, perhaps by another model
    CANCELLED = "cancelled"


class ErrorGroup(Struct, frozen=True):
    """Requests that failed with a code at an upstream, or were retried after it.

    Attributes:
        weight: how much the user has to do about it.
        cured: the number of requests after which the upstream answered again.
        first: the start of the first request, in seconds since 1970; `last`: the last.
        goes_on: whether the upstream has not answered since the last one.
        bars: the numbers of requests in equal parts of the period, the oldest first.
        examples: the last of the requests; none of cancelled ones.
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
    position: int
    requests: int


class _Start(NamedTuple):
    started: Moment


def by_weight(group: ErrorGroup) -> tuple[int, bool, float]:
    """Sort the heaviest first, then groups with requests, then the latest."""
    return list(ErrorWeight).index(group.weight), not group.requests, -group.last


def weigh_errors(
    path: Path, since: float, until: float, upstreams: Collection[str]
) -> list[ErrorGroup]:
    """Return all groups of a period, the heaviest first, and of these the latest.

    Errors of an upstream that is not among `upstreams` need no action.
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
                _make_group(ending, ErrorWeight.CURED, same, (_count(same), False))
                for same in _by_upstream(rows).values()
            ]
        groups.sort(key=by_weight)
        for index, group in enumerate(groups[:_MAX_GROUPS_WITH_EXAMPLES]):
            groups[index] = _add_examples(db, since, group)
        return groups

    return read_journal(path, read, [])


def find_needs(path: Path, since: float, upstreams: Collection[str]) -> set[str]:
    """Return the codes of continuing errors that only the user can fix."""

    def read(db: sqlite3.Connection) -> set[str]:
        groups = _find_failures(db, since, upstreams, {})
        return {g.code for g in groups if g.weight is ErrorWeight.NEEDS_YOU}

    return read_journal(path, read, set())


def _find_failures(
    db: sqlite3.Connection,
    since: float,
    upstreams: Collection[str],
    bars: Mapping[tuple[str, str], list[int]],
) -> Iterator[ErrorGroup]:
    table = error_rows()
    rows = select_rows(db, _Failure, _FAILED, {"since": since})
    for (code, upstream), failures in _by_upstream(rows).items():
        row = table.get(code)
        weight = row.weight if row else ErrorWeight.LOOK
        is_of_upstream = row is not None and row.group in _UPSTREAM_GROUPS
        cured = [_count_cured(db, since, f, is_of_upstream) for f in failures]
        goes_on = any(n < f.requests for n, f in zip(cured, failures, strict=True))
        exists = not upstream or upstream in upstreams
        if weight is ErrorWeight.NEEDS_YOU and not (goes_on and exists):
            weight = ErrorWeight.LOOK
        outcome = sum(cured), goes_on
        counts = bars.get((code, upstream))
        yield _make_group(Ending.FAILED, weight, failures, outcome, counts)


def _add_examples(
    db: sqlite3.Connection, since: float, group: ErrorGroup
) -> ErrorGroup:
    where = _EXAMPLES_OF.get(group.ending)
    if where is None:
        return group
    values = since, group.code, group.upstream
    order = "started DESC, id DESC"
    return replace(group, examples=read_rows(db, where, values, order, _MAX_EXAMPLES))


def _by_upstream(rows: Iterable[_Failure]) -> dict[tuple[str, str], list[_Failure]]:
    groups: dict[tuple[str, str], list[_Failure]] = {}
    for row in rows:
        groups.setdefault((row.code, row.upstream), []).append(row)
    return groups


def _count(failures: Iterable[_Failure]) -> int:
    return sum(failure.requests for failure in failures)


def _count_cured(
    db: sqlite3.Connection, since: float, failure: _Failure, is_of_upstream: bool
) -> int:
    """Return the number of these requests after which there was an answer."""
    if not failure.upstream:
        query = _LAST
    elif is_of_upstream or not failure.model:
        query = _LAST_OF_UPSTREAM
    else:
        query = _LAST_OF_MODEL
    values = {"since": since, **failure._asdict()}
    for answer in select_rows(db, _Start, query, values):
        if answer.started > failure.last:
            return failure.requests
        return read_number(db, _BEFORE, {**values, "last": answer.started})
    return 0


def _count_bars(
    db: sqlite3.Connection, since: float, until: float
) -> dict[tuple[str, str], list[int]]:
    bars: dict[tuple[str, str], list[int]] = {}
    for row in select_rows(db, _Bar, _BY_TIME, {"since": since, "until": until}):
        counts = bars.setdefault((row.code, row.upstream), [0] * BARS)
        counts[min(row.position, BARS - 1)] += row.requests
    return bars


def _make_group(
    ending: Ending,
    weight: ErrorWeight,
    failures: list[_Failure],
    outcome: tuple[int, bool],
    bars: list[int] | None = None,
) -> ErrorGroup:
    cured, goes_on = outcome
    models = [failure.model for failure in failures if failure.model]
    return ErrorGroup(
        weight,
        ending,
        failures[0].code,
        failures[0].upstream,
        models[:_MAX_MODELS],
        _count(failures),
        cured,
        min(failure.first for failure in failures),
        max(failure.last for failure in failures),
        goes_on,
        bars or [0] * BARS,
    )


# ---- Repairs


_MAX_MENDED_MODELS = 100
_MAX_REPAIRED = 50
_MODEL = f"iif(upstream <> '' AND model <> '', {MODEL_NAME}, upstream || model)"
_ANSWERS = f"""SELECT {_MODEL}, count(*) FROM request
    WHERE model <> '' AND started >= ? GROUP BY upstream, model"""  # noqa: S608 - our own words
_BY_MODEL = f"""SELECT {_MODEL}, 0, count(*), total(repairs), total(dropped_calls),
    total(notices), total(loop <> ''), total(max(0, attempts - 1))
    FROM request WHERE {MENDED} AND started >= ?
    GROUP BY upstream, model
    ORDER BY total(repairs + dropped_calls + (attempts > 1)) DESC LIMIT ?"""  # noqa: S608 - our own words


class MendedModel(NamedTuple):
    """Byok's repairs in answers of one model, which is its full name or "" for none.

    `answers` is the number of requests that asked it, `mended` of those with any of the
    other counts. `retries` counts repeated requests, `loops` requests in a loop.
    """

    model: str
    answers: int
    mended: int
    repairs: int
    dropped_calls: int
    notices: int
    loops: int
    retries: int


class _ModelAnswers(NamedTuple):
    name: str
    answers: int = 0


class Mended(NamedTuple):
    """Byok's repairs since a time; the latest requests are first."""

    requests: int  # to models, with any outcome
    models: list[MendedModel]
    latest: list[StoredEntry]


def find_mended(path: Path, since: float) -> Mended:
    """Return repairs since then, in seconds since 1970."""

    def read(db: sqlite3.Connection) -> Mended:
        answers = dict(select_rows(db, _ModelAnswers, _ANSWERS, (since,)))
        where, order = f"{MENDED} AND started >= ?", "started DESC, id DESC"
        rows = select_rows(db, MendedModel, _BY_MODEL, (since, _MAX_MENDED_MODELS))
        return Mended(
            sum(answers.values()),
            [row._replace(answers=answers.get(row.model, 0)) for row in rows],
            read_rows(db, where, [since], order, _MAX_REPAIRED),
        )

    return read_journal(path, read, Mended(0, [], []))
