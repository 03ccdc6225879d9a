"""Sums of the journal: by day, model and so on, for caps, and over time for charts.

All functions that read the journal raise CannotStart if it cannot be read.
"""

import itertools
import math
import operator
import sqlite3
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from byok.core.bounded import BoundedMap
from byok.features.cost import FREE_FAILURES
from byok.features.journal.cache import CacheUse, read_uses
from byok.features.journal.entry import cut_text
from byok.features.journal.reader import (
    make_row,
    read_journal,
    read_number,
    select_rows,
)
from byok.features.journal.schema import FAMILY, MODEL_NAME
from byok.storage.database import identity_of

# What users may group by, as SQL. All SQL here is byok's own text.
GROUPS = {
    "day": "date(started, 'unixepoch', 'localtime')",
    "model": MODEL_NAME,
    "conversation": "conversation",
    "client": "client",
}
_FREE = ", ".join(f"'{name}'" for name in sorted(FREE_FAILURES))
SUMS = f"""count(*), total(outcome = 'failed'), total(input_tokens IS NULL
        AND attempts > 0 AND (first_byte NOT NULL OR error_class NOT IN ({_FREE}))),
    total(input_tokens), total(output_tokens), total(cache_read_tokens),
    total(cache_written_tokens), total(cost), total(cost IS NULL),
    total(iif(cache_read_tokens IS NULL, 0, input_tokens))"""


_CAP_SUMS = """SELECT total(model <> '' AND attempts > 0),
    total(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)),
    total(cost), total(cost IS NULL AND model <> '') FROM request WHERE """
_MAX_NUMBER = 2**63 - 1
_TICK = 1e-6  # seconds; the resolution of a datetime
# What a chart may be split by, as SQL.
SPLITS = {
    "model": GROUPS["model"],
    "client": FAMILY,
    "purpose": "purpose",
    "upstream": "upstream",
}
MOST_BUCKETS = 400
MOST_PARTS = 6
_MAX_GROUPS = 50  # of one bucket; further ones are summed without their names
_MAX_CACHED_BUCKETS = 256
_SAMPLE_SIZE = 2000  # requests of a bucket from which percentiles are computed
_MIN_WRITING_SECONDS = 0.1  # a shorter answer has no speed
_WITHIN = "started >= ? AND started < ?"
_FROM = f"FROM request WHERE {_WITHIN}"
_STATE = f"SELECT count(*), max(id) {_FROM}"
_TIMES = f"""SELECT {{}}, first_byte, seconds, iif(outcome = 'ok', output_tokens, NULL)
    {_FROM} AND model <> '' AND (id * 2654435761 >> 16 & 65535) % ? = 0"""
_YESTERDAY = f"SELECT count(*) {_FROM} AND model <> ''"
_FAILED = f"SELECT count(*) {_FROM} AND outcome = 'failed'"
_Span: TypeAlias = tuple[float, float]


class UsageTable(NamedTuple):
    """The largest groups, how many more there are, and the sum of all."""

    rows: list["UsageRow"]
    more: int
    total: "UsageRow"


class UsageRow(NamedTuple):
    """The sums of one group.

    `failed` requests are among `requests`. `uncounted` requests took tokens that no
    upstream counted, and `unpriced` ones have an unknown `cost` in US dollars; the sums
    do not include them. `cache_input_tokens` is the part of the input whose upstreams
    reported what came from a cache.
    """

    key: str
    requests: int = 0
    failed: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_written_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    cache_input_tokens: int = 0


def sum_usage(path: Path, by: str, since: float) -> list[UsageRow]:
    """Return the sums of all requests that asked a model, one row for each group.

    `by` is one of GROUPS, `since` is in seconds since 1970. Days are in order; of other
    groups the largest come first, by cost and tokens.
    """
    return top_usage(path, by, since, sys.maxsize).rows


def top_usage(path: Path, by: str, since: float, most: int) -> UsageTable:
    """Return the sums as `sum_usage` does, but only the first `most` rows."""
    order = "1" if by == "day" else "total(cost) DESC, total(input_tokens) DESC, 1"
    query = (
        f"SELECT {GROUPS[by]}, {SUMS} FROM request "  # noqa: S608 - our own words
        f"WHERE started >= ? AND model <> '' GROUP BY 1 ORDER BY {order}"
    )

    def read(db: sqlite3.Connection) -> UsageTable:
        rows, more, total = list[UsageRow](), 0, UsageRow("total")
        for row in select_rows(db, UsageRow, query, (since,)):
            total = add_rows([total, row])
            if len(rows) < most:
                rows.append(row)
            else:
                more += 1
        return UsageTable(rows, more, total)

    return read_journal(path, read, UsageTable([], 0, UsageRow("total")))


def add_rows(rows: list[UsageRow]) -> UsageRow:
    """Return the sum of all rows, with the key "total"."""
    total = UsageRow("total")
    for _, *numbers in rows:
        added = map(operator.add, total[1:], numbers)
        total = UsageRow._make(("total", *added))
    return total


# ---- For caps


class JournalSums(NamedTuple):
    """The sums of requests to models; `dollars` do not include `unpriced` requests."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def plus(self, other: "JournalSums") -> "JournalSums":
        """Return the sum of both."""
        return JournalSums(*map(operator.add, self, other))


def sum_period(
    path: Path, begin: float, end: float, last: int | None = None
) -> JournalSums:
    """Sum requests that started from `begin` to before `end`, in seconds since 1970.

    Entries after the number `last` do not count, unless it is None.

    Raises:
        OSError: the folder of the journal cannot be read.
    """
    return _add_up(path, "started >= ? AND started < ? AND id <= ?", [begin, end], last)


def sum_conversation(
    path: Path, conversation: str, last: int | None = None
) -> JournalSums:
    """Sum the requests of a conversation, as far back as the journal goes.

    Raises:
        OSError: the folder of the journal cannot be read.
    """
    name = cut_text(conversation).encode("utf-8", "replace").decode()
    where = "conversation <> '' AND conversation = ? AND id <= ?"
    return _add_up(path, where, [name], last)


def _add_up(
    path: Path, where: str, values: Sequence[object], last: int | None
) -> JournalSums:
    values = (*values, _MAX_NUMBER if last is None else last)

    def read(db: sqlite3.Connection) -> JournalSums:
        return make_row(JournalSums, db.execute(_CAP_SUMS + where, values).fetchone())

    return read_journal(path, read, JournalSums())


# ---- Steps of the local calendar


class Step(StrEnum):
    """The length of a bucket; six hours begin at 0, 6, 12 and 18, a week on Monday.

    When summer time begins or ends, a day has 23 or 25 hours, and so has its bucket.
    """

    HOUR = "hour"
    SIX_HOURS = "six_hours"
    DAY = "day"
    WEEK = "week"


_HOURS = {Step.HOUR: 1, Step.SIX_HOURS: 6, Step.DAY: 24, Step.WEEK: 7 * 24}


def make_buckets(since: float, until: float, step: Step) -> list[tuple[float, float]]:
    """Return start and end of all buckets of a period, in seconds since 1970.

    The first begins at `since`, even within a step; the last is a whole step with the
    moment before `until`. Each ends where the next one begins.

    Raises:
        ValueError: there would be more than MOST_BUCKETS.
    """
    begin = _begin_of(step, until - _TICK)
    buckets = [(max(begin, since), _end_of(step, begin))] if since < until else []
    while begin > since:
        if len(buckets) == MOST_BUCKETS:
            raise ValueError(f"more than {MOST_BUCKETS} buckets")
        begin, end = _begin_of(step, begin - _TICK), begin
        buckets.append((max(begin, since), end))
    return buckets[::-1]


def days_before(moment: float, days: int) -> float:
    """Return the midnight at which the day began that was so many `days` ago."""
    today = _midnight(datetime.fromtimestamp(moment))
    return (today - timedelta(days=days)).timestamp()


def month_begin(moment: float) -> float:
    """Return the midnight at which the month of the local calendar began."""
    return _midnight(datetime.fromtimestamp(moment)).replace(day=1).timestamp()


def day_span(day: date) -> tuple[float, float]:
    """Return when a day of the local calendar begins and ends; some have 23 hours."""
    begin = datetime(day.year, day.month, day.day)
    return begin.timestamp(), (begin + timedelta(days=1)).timestamp()


def hour_begin(moment: float) -> float:
    """Return the start of the hour of the local clock."""
    return _begin_of(Step.HOUR, moment)


def _begin_of(step: Step, moment: float) -> float:
    local = datetime.fromtimestamp(moment)
    if step is Step.HOUR:
        # `fold` stays: an hour that the clock shows twice is two buckets.
        begin = local.replace(minute=0, second=0, microsecond=0)
    else:
        begin = _midnight(local)
        if step is Step.SIX_HOURS:
            begin = begin.replace(hour=local.hour - local.hour % 6)
        elif step is Step.WEEK:
            begin -= timedelta(days=begin.weekday())
    seconds = begin.timestamp()
    # A time that the clock skips counts from before or after the gap.
    return seconds if seconds <= moment else begin.replace(fold=1).timestamp()


def _end_of(step: Step, begin: float) -> float:
    """Return where the next step begins; steps differ in length."""
    seconds = _HOURS[step] * 3600
    end = _begin_of(step, begin + seconds)
    # `end` is `begin` again if this step is longer than usual.
    return end if end > begin else _begin_of(step, begin + seconds + 2 * 3600)


def _midnight(local: datetime) -> datetime:
    return local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


# ---- Over time


class Percentiles(NamedTuple):
    """Half of the values are at most `median`, 95 % at most `high`, or None."""

    median: float | None = None
    high: float | None = None


class Bucket(NamedTuple):
    """The sums of one step of time; `begin` and `end` are in seconds since 1970.

    `parts` are the sums of each name of the series, then those of all other names if
    there are any. Durations are in seconds.
    """

    begin: float
    end: float
    total: UsageRow
    parts: Sequence[UsageRow]
    first_byte: Percentiles
    seconds: Percentiles
    speed: float | None = None


class Series(NamedTuple):
    """Buckets without a gap, the oldest first, and the names that they are split by.

    Attributes:
        names: the largest groups by tokens.
        others: whether there are more groups.
        buckets: the sums.
        speed: the median of all answers in tokens per second, and `speeds` by name.
        medians: the median durations of the requests in seconds, by name.
        caches: the cache use of each model in each bucket, in no order.
    """

    names: Sequence[str]
    others: bool
    buckets: Sequence[Bucket]
    speed: float | None = None
    speeds: Sequence[float | None] = ()
    medians: Sequence[float | None] = ()
    caches: Sequence[CacheUse] = ()


class Day(NamedTuple):
    """A day up to now, by hours and upstreams.

    `failed` has the number of failed requests of each hour, also of those without a
    model, and `yesterday` the number of requests to models by the same time.
    """

    series: Series
    failed: Sequence[int]
    yesterday: int


class _Times(NamedTuple):
    name: str
    first_byte: float | None
    seconds: float
    tokens: int | None

    @property
    def speed(self) -> float | None:
        """The tokens per second after the first byte, None if that is unknown."""
        if not self.tokens or self.first_byte is None:
            return None
        writing = self.seconds - self.first_byte
        return self.tokens / writing if writing >= _MIN_WRITING_SECONDS else None


class _Sums(NamedTuple):
    """The sums of a bucket, `other` those of all groups beyond `groups`.

    `state` is the number of its requests, and the number of the last one.
    """

    state: tuple[int, int | None] = (0, None)
    groups: Sequence[UsageRow] = ()
    other: UsageRow = UsageRow("")
    first_byte: Percentiles = Percentiles()
    seconds: Percentiles = Percentiles()
    durations: Mapping[str, Sequence[float]] = MappingProxyType({})
    speeds: Mapping[str, Sequence[float]] = MappingProxyType({})
    caches: Sequence[CacheUse] = ()


_NOTHING = _Sums()


class SeriesReader:
    """Sums the requests of one journal over time; its methods are thread-safe.

    Rows of a journal never change, so the sums of a bucket are cached until it has
    another number of requests, or another last one. An index answers that in a tenth of
    the time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._cache = BoundedMap[tuple[_Span, str], _Sums](_MAX_CACHED_BUCKETS)
        self._lock = Lock()

    def read(self, since: float, until: float, step: Step, by: str = "") -> Series:
        """Sum the requests that started in a period, in seconds since 1970.

        `by` is one of SPLITS, or "". See `make_buckets` for the buckets.

        Raises:
            ValueError: there would be too many buckets.
        """
        spans = make_buckets(since, until, step)
        with self._lock:
            return _make_series(spans, self._read_spans(spans, by), by)

    def read_day(self, now: float) -> Day:
        """Sum the requests of the current day until `now`, in seconds since 1970."""
        midnight, previous = days_before(now, 0), days_before(now, 1)
        spans = make_buckets(midnight, max(now, midnight + _TICK), Step.HOUR)
        yesterday_span = previous, previous + now - midnight

        def count(db: sqlite3.Connection) -> tuple[list[int], int]:
            failed = [read_number(db, _FAILED, span) for span in spans]
            return failed, read_number(db, _YESTERDAY, yesterday_span)

        with self._lock:
            all_sums = self._read_spans(spans, "upstream")
            failed, yesterday = read_journal(self._path, count, ([0] * len(spans), 0))
        series = _make_series(spans, all_sums, "upstream", _MAX_GROUPS)
        return Day(series, failed, yesterday)

    def _read_spans(self, spans: Sequence[_Span], by: str) -> list[_Sums]:
        def read(db: sqlite3.Connection) -> list[_Sums]:
            if self._file != (file := identity_of(self._path)):
                self._file = file
                self._cache.clear()
            db.execute("BEGIN")  # for one snapshot of the file
            return [self._read_span(db, span, by) for span in spans]

        return read_journal(self._path, read, [_NOTHING] * len(spans))

    def _read_span(self, db: sqlite3.Connection, span: _Span, by: str) -> _Sums:
        state = db.execute(_STATE, span).fetchone()
        if not state[0]:
            return _NOTHING
        sums = self._cache.get((span, by))
        if sums is None or sums.state != state:
            sums = self._cache[span, by] = _sum_span(db, span, by, state)
        return sums


def _sum_span(
    db: sqlite3.Connection, span: _Span, by: str, state: tuple[int, int]
) -> _Sums:
    query = f"SELECT '', {SUMS} {_FROM} AND model <> ''"
    if by:
        query = (
            f"SELECT {SPLITS[by]}, {SUMS} {_FROM} "
            "AND model <> '' GROUP BY 1 "
            "ORDER BY total(input_tokens) + total(output_tokens) DESC, 1"
        )
    groups, other = list[UsageRow](), UsageRow("")
    for row in select_rows(db, UsageRow, query, span):
        if len(groups) < _MAX_GROUPS:
            groups.append(row)
        else:
            other = add_rows([other, row])
    values = (*span, math.ceil(state[0] / _SAMPLE_SIZE))
    query = _TIMES.format(SPLITS.get(by, "''"))
    times = [*select_rows(db, _Times, query, values)]
    first = _percentiles(time.first_byte for time in times)
    seconds = _percentiles(time.seconds for time in times)
    durations: dict[str, array[float]] = {}
    speeds: dict[str, array[float]] = {}
    for time in times:
        durations.setdefault(time.name, array("d")).append(time.seconds)
        if (speed := time.speed) is not None:
            speeds.setdefault(time.name, array("d")).append(speed)
    caches = read_uses(db, _WITHIN, span)
    return _Sums(state, groups, other, first, seconds, durations, speeds, caches)


def _percentiles(values: Iterable[float | None]) -> Percentiles:
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return Percentiles()
    median, high = (ordered[math.ceil(p * len(ordered)) - 1] for p in (0.5, 0.95))
    return Percentiles(median, high)


def _make_series(
    spans: Sequence[_Span],
    all_sums: Sequence[_Sums],
    by: str,
    max_parts: int = MOST_PARTS,
) -> Series:
    """Return buckets with the same parts: the largest ones of the whole time."""
    tokens = dict[str, int]()
    for row in (row for sums in all_sums for row in sums.groups if by):
        total = row.input_tokens + row.output_tokens
        tokens[row.key] = tokens.get(row.key, 0) + total
    ordered = sorted(tokens, key=lambda name: (-tokens[name], name))
    names = ordered[:max_parts]
    others = len(ordered) > len(names)
    buckets = [
        Bucket(
            *span,
            add_rows([*sums.groups, sums.other]),
            _parts(sums, names, others=others) if by else [],
            sums.first_byte,
            sums.seconds,
            _median(sums.speeds.values()),
        )
        for span, sums in zip(spans, all_sums, strict=True)
    ]
    speed = _median(part for sums in all_sums for part in sums.speeds.values())
    speeds = [_median(sums.speeds.get(n, ()) for sums in all_sums) for n in names]
    medians = [_median(sums.durations.get(n, ()) for sums in all_sums) for n in names]
    caches = [use for sums in all_sums for use in sums.caches]
    return Series(names, others, buckets, speed, speeds, medians, caches)


def _median(parts: Iterable[Sequence[float]]) -> float | None:
    return _percentiles(itertools.chain.from_iterable(parts)).median


def _parts(sums: _Sums, names: Sequence[str], *, others: bool) -> list[UsageRow]:
    by_name = {row.key: row for row in sums.groups}
    parts = [by_name.get(name, UsageRow(name)) for name in names]
    if others:
        unnamed = [row for row in sums.groups if row.key not in names]
        parts.append(add_rows([*unnamed, sums.other]))
    return parts
