"""Sums over time: no bucket is missing, and what is unknown is counted."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from byok.features.caps import spending_of
from byok.features.journal.entry import JournalEntry
from byok.features.journal.usage import (
    GROUPS,
    MOST_BUCKETS,
    MOST_PARTS,
    SPLITS,
    JournalSums,
    Percentiles,
    Series,
    SeriesReader,
    Step,
    UsageRow,
    add_rows,
    day_span,
    days_before,
    hour_begin,
    make_buckets,
    month_begin,
    sum_conversation,
    sum_period,
    sum_usage,
    top_usage,
)
from tests.fakes.journal_entries import NOW, UNKNOWN, entry, write_journal

HOUR = 3600
SINCE = NOW - 2 * HOUR
PLAIN = entry(
    input_tokens=100, output_tokens=10, cache_read_tokens=50, cache_written_tokens=5
)
HOSTILE = "'; DROP TABLE request; --\x1b[2J\u202e<img src=x>"


@pytest.fixture(autouse=True)
def utc(request: pytest.FixtureRequest) -> None:
    """Let hours begin where they do in the tests: some zones are half an hour off."""
    if hasattr(time, "tzset"):
        request.getfixturevalue("set_zone")("UTC")


def write(folder: Path, *entries: JournalEntry) -> Path:
    return write_journal(folder / "journal.db", entries)


def at(hours: float, **fields: Any) -> JournalEntry:
    return PLAIN._replace(started=SINCE + hours * HOUR, **fields)


def sum_series(
    path: Path, since: float, until: float, step: Step, by: str = ""
) -> Series:
    return SeriesReader(path).read(since, until, step, by)


def test_every_bucket_is_there_and_empty_ones_are_zeros(tmp_path: Path) -> None:
    path = write(tmp_path, at(-0.1), at(0.0), at(0.5), at(2.5), at(3.0))
    series = sum_series(path, SINCE, NOW + 1, Step.HOUR)
    assert [bucket.total.requests for bucket in series.buckets] == [2, 0, 1]
    assert series.buckets[1].total == UsageRow("total")
    assert series.buckets[1].first_byte == Percentiles(None, None)
    assert (series.buckets[0].begin, series.buckets[2].end) == (SINCE, NOW + HOUR)


def test_sums_are_those_of_usage(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        at(0.1, cost=0.5, model="a"),
        at(0.2, **UNKNOWN, outcome="cancelled"),
        at(1.2, cost=None, client="other"),
        at(1.3, outcome="failed", purpose="edit"),
        at(1.4, model="", upstream="official", cost=None),
    )
    wanted = add_rows(sum_usage(path, "day", 0))
    assert wanted == UsageRow("total", 4, 1, 1, 300, 30, 150, 15, 0.75, 2, 300)
    for by in ("", *SPLITS):
        buckets = sum_series(path, SINCE, NOW, Step.HOUR, by).buckets
        assert add_rows([bucket.total for bucket in buckets]) == wanted
        parts = [part for bucket in buckets for part in bucket.parts]
        assert add_rows(parts) == (wanted if by else UsageRow("total"))


def test_half_of_the_requests_of_each_name_end_within_its_median(
    tmp_path: Path,
) -> None:
    kinds = {"next_edit": (0.2, 0.3, 0.9), "chat": (8.0,)}
    entries = [
        at(number % 2 + 0.5, purpose=purpose, seconds=seconds)
        for purpose, all_seconds in kinds.items()
        for number, seconds in enumerate(all_seconds)
    ]
    path = write(tmp_path, *entries)
    series = sum_series(path, SINCE, NOW, Step.HOUR, "purpose")
    medians = dict(zip(series.names, series.medians, strict=True))
    assert medians == {"next_edit": 0.3, "chat": 8.0}


def test_the_parts_of_all_buckets_are_the_largest_names_and_the_rest(
    tmp_path: Path,
) -> None:
    entries = [
        at(number % 2 + 0.5, client=f"c{number}", input_tokens=number * 100)
        for number in range(1, MOST_PARTS + 4)
    ]
    series = sum_series(write(tmp_path, *entries), SINCE, NOW, Step.HOUR, "client")
    assert series.names == ["c9", "c8", "c7", "c6", "c5", "c4"]
    assert series.others
    first, second = ([p.input_tokens for p in b.parts] for b in series.buckets)
    assert first == [0, 800, 0, 600, 0, 400, 200]
    assert second == [900, 0, 700, 0, 500, 0, 400]


def test_a_client_is_one_name_whatever_its_version(tmp_path: Path) -> None:
    asked = ("vscode/0.600.1", "cli", "vscode/0.601.0", "")
    path = write(tmp_path, *(at(0.1, client=client) for client in asked))
    series = sum_series(path, SINCE, NOW, Step.HOUR, "client")
    assert series.names == ["vscode", "", "cli"]
    assert series.buckets[0].parts[0].requests == 2


def test_without_more_names_there_is_no_rest(tmp_path: Path) -> None:
    path = write(tmp_path, at(0.1), at(0.2, upstream="two"))
    series = sum_series(path, SINCE, NOW, Step.HOUR, "model")
    assert (series.names, series.others) == (["byok:one:m", "byok:two:m"], False)
    assert [len(bucket.parts) for bucket in series.buckets] == [2, 2]


def test_the_names_of_many_groups_are_not_kept_but_counted(tmp_path: Path) -> None:
    path = write(tmp_path, *(at(0.5, client=f"client {n}") for n in range(300)))
    series = sum_series(path, SINCE, NOW, Step.HOUR, "client")
    assert [part.requests for part in series.buckets[0].parts] == [1] * 6 + [294]
    assert series.buckets[0].total.requests == 300


@pytest.mark.parametrize("by", ["model", "client", "purpose"])
def test_names_are_data(tmp_path: Path, by: str) -> None:
    hostile = at(0.5, **{by: HOSTILE})
    series = sum_series(write(tmp_path, hostile), SINCE, NOW, Step.HOUR, by)
    assert series.names == [f"byok:one:{HOSTILE}" if by == "model" else HOSTILE]
    with pytest.raises(KeyError):
        sum_series(tmp_path / "journal.db", SINCE, NOW, Step.HOUR, HOSTILE)


@pytest.mark.parametrize(
    ("values", "median", "high"),
    [
        ([], None, None),
        ([None, None], None, None),
        ([0.5], 0.5, 0.5),
        ([3.0, 1.0, None, 2.0], 2.0, 3.0),
        ([n / 10 for n in range(1, 101)], 5.0, 9.5),
    ],
)
def test_percentiles_are_values_that_were_measured(
    tmp_path: Path, values: list[float | None], median: float, high: float
) -> None:
    path = write(tmp_path, *(at(0.5, first_byte=value) for value in values))
    [bucket] = sum_series(path, SINCE, SINCE + HOUR, Step.HOUR).buckets
    assert bucket.first_byte == Percentiles(median, high)
    assert bucket.seconds == (Percentiles(2.5, 2.5) if values else Percentiles())


@pytest.mark.slow
def test_percentiles_of_many_requests_are_those_of_a_fair_sample(
    tmp_path: Path,
) -> None:
    entries = (at(0.5, first_byte=n % 1000 / 1000) for n in range(6000))
    [bucket] = sum_series(
        write(tmp_path, *entries), SINCE, SINCE + HOUR, Step.HOUR
    ).buckets
    assert bucket.first_byte.median == pytest.approx(0.5, abs=0.05)
    assert bucket.first_byte.high == pytest.approx(0.95, abs=0.03)


def test_a_reader_sees_what_was_written_and_removed_meanwhile(tmp_path: Path) -> None:
    path = write(tmp_path, at(0.5), at(1.5))
    reader = SeriesReader(path)

    def read() -> list[int]:
        series = reader.read(SINCE, NOW, Step.HOUR, "model")
        return [bucket.parts[0].requests for bucket in series.buckets]

    assert read() == read() == [1, 1]
    write(tmp_path, at(0.6), at(1.6), at(1.7))
    assert read() == [2, 3]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM request WHERE id = 2")
    assert read() == [2, 2]


def test_a_reader_sees_that_the_journal_is_another_one(tmp_path: Path) -> None:
    path = write(tmp_path, at(0.5, client="before"))
    reader = SeriesReader(path)
    assert reader.read(SINCE, NOW, Step.HOUR, "client").names == ["before"]
    path.rename(tmp_path / "aside.db")
    assert reader.read(SINCE, NOW, Step.HOUR, "client").names == []
    write(tmp_path, at(0.5, client="after"))
    assert reader.read(SINCE, NOW, Step.HOUR, "client").names == ["after"]


def test_what_has_not_changed_is_not_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, at(0.5, cost=1.0), at(1.5, cost=1.0))
    reader = SeriesReader(path)
    reader.read(SINCE, NOW, Step.HOUR)
    with closing(sqlite3.connect(path)) as db, db:  # as byok never does
        db.execute("UPDATE request SET cost = 2.0")
    write(tmp_path, at(1.6, cost=2.0))
    buckets = reader.read(SINCE, NOW, Step.HOUR).buckets
    assert [bucket.total.cost for bucket in buckets] == [1.0, 4.0]


def test_without_a_journal_all_buckets_are_zeros(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    series = sum_series(path, SINCE, NOW, Step.HOUR, "model")
    assert [bucket.total.requests for bucket in series.buckets] == [0, 0]
    assert (series.names, series.others) == ([], False)
    assert not path.exists()


def utc_time(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def local(moment: float) -> str:
    return datetime.fromtimestamp(moment).strftime("%d %H:%M")


# Zone, now in UTC, days before, step; the local begins and the lengths in hours.
CASES = [
    ("UTC", "2026-03-04T15:20", 1, Step.DAY, ["03 00:00", "04 00:00"], [24, 24]),
    (
        "Europe/Berlin",  # 23 hours on the 29th
        "2026-03-29T22:30",
        2,
        Step.DAY,
        ["28 00:00", "29 00:00", "30 00:00"],
        [24, 23, 24],
    ),
    (
        "Europe/Berlin",  # 25 hours on the 25th
        "2026-10-25T22:30",
        1,
        Step.DAY,
        ["24 00:00", "25 00:00"],
        [24, 25],
    ),
    (
        "Europe/Berlin",
        "2026-10-25T22:30",
        0,
        Step.SIX_HOURS,
        ["25 00:00", "25 06:00", "25 12:00", "25 18:00"],
        [7, 6, 6, 6],
    ),
    (
        "Europe/Berlin",  # 02:00 comes twice
        "2026-10-25T02:10",
        0,
        Step.HOUR,
        ["25 00:00", "25 01:00", "25 02:00", "25 02:00", "25 03:00"],
        [1, 1, 1, 1, 1],
    ),
    (
        "Africa/Cairo",  # the 24th begins utc_time 01:00
        "2026-04-24T12:00",
        1,
        Step.DAY,
        ["23 00:00", "24 01:00"],
        [24, 23],
    ),
    (
        "NZ-CHAT",  # 02:45 is followed by 03:45
        "2024-09-28T15:00",
        0,
        Step.HOUR,
        ["29 00:00", "29 01:00", "29 02:00", "29 04:00"],
        [1, 1, 1, 1],
    ),
    (
        "America/New_York",  # from a Thursday: its week is cut
        "2026-01-12T20:00",
        11,
        Step.WEEK,
        ["01 00:00", "05 00:00", "12 00:00"],
        [96, 168, 168],
    ),
]


@pytest.mark.parametrize(("zone", "now", "days", "step", "begins", "hours"), CASES)
def test_buckets_are_those_of_the_local_clock(
    set_zone: Callable[[str], None],
    zone: str,
    now: str,
    days: int,
    step: Step,
    begins: list[str],
    hours: list[int],
) -> None:
    set_zone(zone)
    buckets = make_buckets(days_before(utc_time(now), days), utc_time(now), step)
    assert [local(begin) for begin, _ in buckets] == begins
    assert [(end - begin) / 3600 for begin, end in buckets] == hours


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "NZ-CHAT"]
)
def test_buckets_leave_no_gap_and_do_not_overlap(
    set_zone: Callable[[str], None], zone: str, step: Step
) -> None:
    set_zone(zone)
    for day in range(1, 365, 5):
        now = utc_time("2026-01-01T13:37") + day * 86_400
        since = days_before(now, 6)
        buckets = make_buckets(since, now, step)
        assert buckets[0][0] == since
        assert buckets[-1][0] < now <= buckets[-1][1]
        ends = [end for _, end in buckets[:-1]]
        assert ends == [begin for begin, _ in buckets[1:]]
        assert all(begin < end for begin, end in buckets)


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Africa/Cairo", "America/Havana", "NZ-CHAT"]
)
def test_a_day_is_its_bucket(set_zone: Callable[[str], None], zone: str) -> None:
    set_zone(zone)
    days = make_buckets(
        utc_time("2026-01-02T00:00"), utc_time("2026-12-31T00:00"), Step.DAY
    )
    for begin, end in days[1:]:
        assert day_span(datetime.fromtimestamp(begin)) == (begin, end)


def test_the_last_bucket_holds_the_moment_before_the_end(
    set_zone: Callable[[str], None],
) -> None:
    set_zone("UTC")
    midnight = utc_time("2026-03-04T00:00")
    assert make_buckets(midnight - 1, midnight, Step.DAY) == [(midnight - 1, midnight)]
    assert make_buckets(midnight, midnight, Step.DAY) == []
    later = make_buckets(midnight, midnight + 0.25, Step.HOUR)
    assert later == [(midnight, midnight + 3600)]
    assert len(make_buckets(midnight - 1, midnight + 0.25, Step.DAY)) == 2


def test_a_month_begins_with_the_midnight_of_its_first_day(
    set_zone: Callable[[str], None],
) -> None:
    set_zone("Europe/Berlin")
    for now, begin in (
        ("2026-03-31T21:59", "2026-02-28T23:00"),  # the clock was changed meanwhile
        ("2026-03-31T22:00", "2026-03-31T22:00"),
        ("2026-11-10T12:00", "2026-10-31T23:00"),
    ):
        assert month_begin(utc_time(now)) == utc_time(begin)


def test_hours_are_counted_and_not_read_from_the_clock(
    set_zone: Callable[[str], None],
) -> None:
    set_zone("Europe/Berlin")
    now = utc_time("2026-10-25T12:59")
    since = hour_begin(now - 23 * 3600)
    assert local(since) == "24 15:00"
    assert len(make_buckets(since, now, Step.HOUR)) == 24


def test_there_are_only_so_many_buckets() -> None:
    hour = 3600.0
    whole = hour_begin(utc_time("2026-01-02T00:00"))
    most = make_buckets(whole - (MOST_BUCKETS - 1) * hour, whole + 1, Step.HOUR)
    assert len(most) == MOST_BUCKETS
    with pytest.raises(ValueError, match="buckets"):
        make_buckets(whole - MOST_BUCKETS * hour, whole + 1, Step.HOUR)


DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_journal(
        tmp_path / "journal.db",
        [
            PLAIN._replace(started=NOW - DAY, cost=0.25),
            PLAIN._replace(cost=0.5, client="cli/1", conversation="two"),
            PLAIN._replace(cost=None, model="other"),
            PLAIN._replace(**UNKNOWN, outcome="cancelled"),
            PLAIN._replace(
                outcome="failed",
                error_class="UpstreamRefused",
                first_byte=None,
                cost=0.0,
                input_tokens=None,
                output_tokens=None,
            ),
            PLAIN._replace(model="", upstream="official", cost=None),
        ],
    )


def test_sums_leave_out_what_is_unknown_and_count_it(path: Path) -> None:
    rows = {row.key: row for row in sum_usage(path, "model", 0)}
    assert rows["byok:one:m"] == UsageRow(
        "byok:one:m", 4, 1, 1, 200, 20, 150, 15, 0.75, 1, 200
    )
    assert (rows["byok:one:other"].cost, rows["byok:one:other"].unpriced) == (0.0, 1)


def test_sums_say_how_much_input_a_cache_was_told_of(tmp_path: Path) -> None:
    untold = PLAIN._replace(cache_read_tokens=None, cache_written_tokens=None)
    journal = write_journal(tmp_path / "journal.db", [PLAIN, untold])
    [row] = sum_usage(journal, "model", 0)
    assert (row.input_tokens, row.cache_input_tokens) == (200, 100)
    assert row.cache_read_tokens == 50


def test_days_are_those_of_the_calendar_here_and_in_order(
    path: Path, set_zone: Callable[[str], None]
) -> None:
    days: list[list[str]] = []
    for zone in ("UTC", "Pacific/Kiritimati"):  # noon there is early, 14 hours on
        set_zone(zone)
        days.append([row.key for row in sum_usage(path, "day", 0)])
    assert days == [["2025-12-31", "2026-01-01"], ["2026-01-01", "2026-01-02"]]


@pytest.mark.parametrize("by", GROUPS)
def test_the_total_is_the_same_however_it_is_grouped(path: Path, by: str) -> None:
    total = UsageRow("total", 5, 1, 1, 300, 30, 200, 20, 0.75, 2, 300)
    assert add_rows(sum_usage(path, by, 0)) == total


def test_the_total_is_that_of_rows_that_are_not_kept_too(path: Path) -> None:
    found = top_usage(path, "model", 0, 1)
    assert [row.key for row in found.rows] == ["byok:one:m"]
    assert (found.more, found.total) == (1, add_rows(sum_usage(path, "model", 0)))


SPENT = [
    PLAIN,
    PLAIN._replace(started=NOW + 10, conversation="two"),
    PLAIN._replace(cost=None),  # of unknown price
    PLAIN._replace(cost=None, input_tokens=None, output_tokens=None),  # cancelled
    PLAIN._replace(model="", upstream="", cost=0.5),  # byok's own question
    PLAIN._replace(model="", upstream="official", cost=None, input_tokens=None),
    PLAIN._replace(attempts=0, cost=0.0, input_tokens=None, output_tokens=None),
    PLAIN._replace(started=NOW - 1),
    PLAIN._replace(started=NOW + 20),
]


@pytest.fixture
def spent(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "journal.db", SPENT)


def test_a_period_has_its_begin_but_not_its_end(spent: Path) -> None:
    assert sum_period(spent, NOW, NOW + 20) == JournalSums(4, 450, 1.0, 2)
    assert sum_period(spent, NOW + 20, NOW + 21) == JournalSums(1, 110, 0.25, 0)
    assert sum_period(spent, NOW + 21, NOW + 99) == JournalSums()


def test_only_entries_up_to_a_number_count(spent: Path) -> None:
    assert sum_period(spent, NOW, NOW + 20, last=1) == JournalSums(1, 110, 0.25, 0)
    assert sum_period(spent, NOW, NOW + 20, last=0) == JournalSums()
    assert sum_conversation(spent, "two", last=1) == JournalSums()


def test_a_conversation_is_its_whole_id(spent: Path) -> None:
    assert sum_conversation(spent, "two") == JournalSums(1, 110, 0.25, 0)
    for other in ("tw", "", "two' OR 1", "\ud83d"):
        assert sum_conversation(spent, other) == JournalSums()


def test_the_journal_counts_as_memory_does(spent: Path) -> None:
    in_memory = JournalSums()
    for one in SPENT:
        in_memory = in_memory.plus(spending_of(one))
    assert sum_period(spent, 0, NOW * 2) == in_memory
