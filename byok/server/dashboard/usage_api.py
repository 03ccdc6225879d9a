"""Tokens, cost, cache and speed over time, from the journal.

`series` {range, by?} gives sums for each stretch of a range, `usage` {by, days} sums by
day, model, conversation or client. A cost is without the requests that are `unpriced`.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from byok.core.chat import Json
from byok.features.journal.settings import JournalSettings
from byok.features.journal.usage import (
    GROUPS,
    SPLITS,
    Bucket,
    SeriesReader,
    Step,
    UsageRow,
    UsageTable,
    add_rows,
    days_before,
    hours_before,
    top_usage,
)
from byok.server.dashboard.endpoint import (
    PageHandler,
    PageRequest,
    read_choice,
    read_count,
)
from byok.server.dashboard.journal_api import read_journal
from byok.wiring.services import Services

_MOST_DAYS = 366
_MOST_ROWS = 100


class _Range(NamedTuple):
    """Today and so many days before it, or the last hours; in such steps."""

    days: int
    step: Step


RANGES = {
    "day": _Range(0, Step.HOUR),
    "week": _Range(6, Step.SIX_HOURS),
    "month": _Range(29, Step.DAY),
    "quarter": _Range(89, Step.WEEK),
}
_HOURS = 23  # before this one


def make_usage_handlers(
    services: Services, clock: Callable[[], float]
) -> Mapping[str, PageHandler]:
    """Return what answers `series` and `usage`; `clock` gives seconds since 1970."""
    keep_days = services.settings.section(JournalSettings).keep_days
    return _UsageApi(services.paths.journal, keep_days, clock).handlers


class _UsageApi:
    def __init__(
        self, journal: Path, keep_days: int, clock: Callable[[], float]
    ) -> None:
        self._journal = journal
        self._keeps = keep_days > 0
        self._clock = clock
        self._reader = SeriesReader(journal)
        self._one_at_a_time = asyncio.Lock()
        self.handlers: Mapping[str, PageHandler] = {
            "series": self._series,
            "usage": self._usage,
        }

    async def _series(self, asked: PageRequest) -> Json:
        wanted = read_choice(asked.body, "range", RANGES)
        by = read_choice(asked.body, "by", SPLITS, "")
        async with self._one_at_a_time:
            read = partial(self._read_series, wanted, by)
            return await read_journal(self._journal, read)

    async def _usage(self, asked: PageRequest) -> Json:
        by = read_choice(asked.body, "by", GROUPS)
        days = read_count(asked.body, "days", 30, most=_MOST_DAYS)
        async with self._one_at_a_time:
            read = partial(self._read_usage, by, days)
            found = await read_journal(self._journal, read)
        return {
            "by": by,
            "days": days,
            "rows": [row._asdict() for row in found.rows],
            "more": found.more,
            "total": found.total._asdict(),
        }

    def _read_series(self, wanted: str, by: str) -> Json:
        days, step = RANGES[wanted]
        now = self._clock()
        since = days_before(now, days) if days else hours_before(now, _HOURS)
        series = self._reader.read(since, now, step, by)
        total = add_rows([bucket.total for bucket in series.buckets])
        return {
            "range": wanted,
            "step": step.value,
            "keeps": self._keeps,
            "names": series.names,
            "others": series.others,
            "total": _sums(total),
            "buckets": [_write(bucket) for bucket in series.buckets],
        }

    def _read_usage(self, by: str, days: int) -> UsageTable:
        now = self._clock()
        since = days_before(now, days - 1)
        if by != "day":
            return top_usage(self._journal, by, since, _MOST_ROWS)
        read = self._reader.read(since, now, Step.DAY)  # which does not read all anew
        rows = [
            bucket.total._replace(key=_local(bucket.begin)[:10])
            for bucket in read.buckets
            if bucket.total.requests
        ]
        return UsageTable(rows, 0, add_rows(rows))


def _local(moment: float) -> str:
    """Return what clock and calendar show here, as 2026-01-31T18:00."""
    return datetime.fromtimestamp(moment).isoformat(timespec="minutes")


def _write(bucket: Bucket) -> Json:
    return {
        "begin": bucket.begin,
        "local": _local(bucket.begin),
        **_sums(bucket.total),
        "parts": [_sums(part) for part in bucket.parts],
        "first_byte": bucket.first_byte._asdict(),
        "seconds": bucket.seconds._asdict(),
    }


def _sums(row: UsageRow) -> dict[str, float]:
    return {name: value for name, value in row._asdict().items() if name != "key"}
