"""Sums of the journal over time, for charts: a row for each hour, day and so on.

Rows of a journal never change, so the sums of a bucket stay what they are while it
holds as many requests, and the same last one. That is asked of an index, in a tenth of
the time, and only buckets that differ are added up.
"""

import math
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple, TypeAlias

from byok.bounded import BoundedMap
from byok.journal.buckets import Step, make_buckets
from byok.journal.reader import read_journal
from byok.journal.rows import select_rows
from byok.journal.usage import GROUPS, SUMS, UsageRow, add_rows

MOST_PARTS = 6
# Our own words in SQL, by what a chart may be split by.
SPLITS = {"model": GROUPS["model"], "client": "client", "purpose": "purpose"}
_MOST_GROUPS = 50  # of one bucket; the names of further ones are not kept
_MOST_KNOWN = 256  # buckets
_SAMPLE = 2000  # about so many requests of a bucket tell its percentiles
_FROM = "FROM request WHERE started >= ? AND started < ?"
_STATE = f"SELECT count(*), max(id) {_FROM}"
_TIMES = f"""SELECT first_byte, seconds {_FROM} AND model <> ''
    AND (id * 2654435761 >> 16 & 65535) % ? = 0"""
_Span: TypeAlias = tuple[float, float]


class Percentiles(NamedTuple):
    """Half of the values are at most `median`, 95 % at most `high`; None if none is."""

    median: float | None = None
    high: float | None = None


class Bucket(NamedTuple):
    """The sums of one stretch of time; `begin` and `end` are seconds since 1970.

    `parts` are the sums of each name of the series, then those of all other names if
    there are any. Durations are in seconds.
    """

    begin: float
    end: float
    total: UsageRow
    parts: Sequence[UsageRow]
    first_byte: Percentiles
    seconds: Percentiles


class Series(NamedTuple):
    """Buckets without a gap, the oldest first, and the names that they are split by.

    `names` are the largest groups by tokens; `others` tells whether there are more.
    """

    names: Sequence[str]
    others: bool
    buckets: Sequence[Bucket]


class _Times(NamedTuple):
    first_byte: float | None
    seconds: float


class _Sums(NamedTuple):
    """What is known of a bucket; `state` are its requests and the last one's number."""

    state: tuple[int, int | None] = (0, None)
    groups: Sequence[UsageRow] = ()
    rest: UsageRow = UsageRow("")
    first_byte: Percentiles = Percentiles()
    seconds: Percentiles = Percentiles()


_NOTHING = _Sums()


class SeriesReader:
    """Adds up one journal, for any thread; what has not changed is not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._known = BoundedMap[tuple[_Span, str], _Sums](_MOST_KNOWN)
        self._lock = Lock()

    def read(self, since: float, until: float, step: Step, by: str = "") -> Series:
        """Add up what started in a period, in seconds since 1970.

        `by` is one of SPLITS, or "". See `make_buckets` for the buckets.

        Raises:
            ValueError: these would be too many buckets.
            CannotStart: the journal cannot be read.
        """
        spans = make_buckets(since, until, step)
        with self._lock:
            return _arrange(spans, self._read_spans(spans, by), by)

    def _read_spans(self, spans: Sequence[_Span], by: str) -> list[_Sums]:
        def read(db: sqlite3.Connection) -> list[_Sums]:
            facts = self._path.stat()
            if self._file != (facts.st_dev, facts.st_ino):
                self._file = facts.st_dev, facts.st_ino
                self._known.clear()
            db.execute("BEGIN")  # all is read from one state
            return [self._read_span(db, span, by) for span in spans]

        return read_journal(self._path, read, [_NOTHING] * len(spans))

    def _read_span(self, db: sqlite3.Connection, span: _Span, by: str) -> _Sums:
        state = db.execute(_STATE, span).fetchone()
        if not state[0]:
            return _NOTHING
        known = self._known.get((span, by))
        if known is None or known.state != state:
            known = self._known[span, by] = _add_up(db, span, by, state)
        return known


def _add_up(
    db: sqlite3.Connection, span: _Span, by: str, state: tuple[int, int]
) -> _Sums:
    query = f"SELECT '', {SUMS} {_FROM} AND model <> ''"
    if by:
        query = (
            f"SELECT {SPLITS[by]}, {SUMS} {_FROM} "
            "AND model <> '' GROUP BY 1 "
            "ORDER BY total(input_tokens) + total(output_tokens) DESC, 1"
        )
    groups, rest = list[UsageRow](), UsageRow("")
    for row in select_rows(db, UsageRow, query, span):
        if len(groups) < _MOST_GROUPS:
            groups.append(row)
        else:
            rest = add_rows([rest, row])
    sampled = (*span, math.ceil(state[0] / _SAMPLE))
    times = [*select_rows(db, _Times, _TIMES, sampled)]
    first = _percentiles(time.first_byte for time in times)
    seconds = _percentiles(time.seconds for time in times)
    return _Sums(state, groups, rest, first, seconds)


def _percentiles(values: Iterable[float | None]) -> Percentiles:
    known = sorted(value for value in values if value is not None)
    if not known:
        return Percentiles()
    return Percentiles(_at(known, 0.5), _at(known, 0.95))


def _at(ordered: Sequence[float], part: float) -> float:
    return ordered[math.ceil(part * len(ordered)) - 1]


def _arrange(spans: Sequence[_Span], read: Sequence[_Sums], by: str) -> Series:
    """Give all buckets the same parts: those that are the largest in the whole time."""
    tokens = dict[str, int]()
    for row in (row for sums in read for row in sums.groups if by):
        spent = row.input_tokens + row.output_tokens
        tokens[row.key] = tokens.get(row.key, 0) + spent
    ordered = sorted(tokens, key=lambda name: (-tokens[name], name))
    names = ordered[:MOST_PARTS]
    others = len(ordered) > len(names)
    buckets = [
        Bucket(
            *span,
            add_rows([*sums.groups, sums.rest]),
            _parts(sums, names, others=others) if by else [],
            sums.first_byte,
            sums.seconds,
        )
        for span, sums in zip(spans, read, strict=True)
    ]
    return Series(names, others, buckets)


def _parts(sums: _Sums, names: Sequence[str], *, others: bool) -> list[UsageRow]:
    named = {row.key: row for row in sums.groups}
    parts = [named.get(name, UsageRow(name)) for name in names]
    if others:
        left = [row for row in sums.groups if row.key not in names]
        parts.append(add_rows([*left, sums.rest]))
    return parts
