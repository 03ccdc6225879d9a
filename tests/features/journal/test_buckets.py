"""Buckets follow the local calendar, also where summer time begins or ends."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from byok.features.journal.usage import (
    MOST_BUCKETS,
    Step,
    day_span,
    days_before,
    hours_before,
    make_buckets,
    month_begin,
)


def at(text: str) -> float:
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
        "Africa/Cairo",  # the 24th begins at 01:00
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
    buckets = make_buckets(days_before(at(now), days), at(now), step)
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
        now = at("2026-01-01T13:37") + day * 86_400
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
    days = make_buckets(at("2026-01-02T00:00"), at("2026-12-31T00:00"), Step.DAY)
    for begin, end in days[1:]:
        assert day_span(datetime.fromtimestamp(begin)) == (begin, end)


def test_the_last_bucket_holds_the_moment_before_the_end(
    set_zone: Callable[[str], None],
) -> None:
    set_zone("UTC")
    midnight = at("2026-03-04T00:00")
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
        assert month_begin(at(now)) == at(begin)


def test_hours_are_counted_and_not_read_from_the_clock(
    set_zone: Callable[[str], None],
) -> None:
    set_zone("Europe/Berlin")
    now = at("2026-10-25T12:59")
    since = hours_before(now, 23)
    assert local(since) == "24 15:00"
    assert len(make_buckets(since, now, Step.HOUR)) == 24


def test_there_are_only_so_many_buckets() -> None:
    hour = 3600.0
    whole = hours_before(at("2026-01-02T00:00"), 0)
    most = make_buckets(whole - (MOST_BUCKETS - 1) * hour, whole + 1, Step.HOUR)
    assert len(most) == MOST_BUCKETS
    with pytest.raises(ValueError, match="buckets"):
        make_buckets(whole - MOST_BUCKETS * hour, whole + 1, Step.HOUR)
