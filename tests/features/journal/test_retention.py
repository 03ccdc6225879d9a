"""Old requests go, then the oldest, in small steps; the file becomes smaller."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from byok.features.journal.writer import STEP, tidy
from tests.fakes.journal_entries import NOW, entry, opened_journal, write_journal

DAY = 86_400
NO_LIMIT = 2**60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def count(db: sqlite3.Connection) -> int:
    number: int = db.execute("SELECT count(*) FROM request").fetchone()[0]
    return number


def finish(
    db: sqlite3.Connection,
    *,
    now: float = NOW,
    keep_days: int = 90,
    most_bytes: int = NO_LIMIT,
) -> Iterator[int]:
    """Tidy to the end; give how many requests are left after each step."""
    more = True
    while more:
        more = tidy(db, now=now, keep_days=keep_days, most_bytes=most_bytes)
        yield count(db)


def days_left(path: Path, days: Sequence[int], now: int, keep_days: int) -> list[float]:
    """Write a request of each day, tidy as if it were day `now`; give those left."""
    write_journal(path, [entry(started=NOW + day * DAY) for day in days])
    with opened_journal(path) as db:
        for _ in finish(db, now=NOW + now * DAY, keep_days=keep_days):
            pass
        rows = db.execute("SELECT started FROM request ORDER BY id").fetchall()
    return [(started - NOW) / DAY for (started,) in rows]


def test_requests_that_are_too_old_go_whatever_their_order(path: Path) -> None:
    assert days_left(path, (-3, -1, -2, 0), now=0, keep_days=1) == [-1, 0]


@pytest.mark.parametrize("ahead", [90, 365, 36_500])
@pytest.mark.parametrize("written", [[], [0], [0, 0]])
def test_a_clock_that_is_ahead_costs_a_week_at_most(
    path: Path, ahead: int, written: list[int]
) -> None:
    days = [*range(-90, 0), *(ahead + day for day in written)]
    left = days_left(path, days, now=ahead, keep_days=90)
    assert left == [day for day in days if day >= -1 + 7 - 90]


def test_a_clock_that_was_ahead_removes_nothing_once_it_is_right(path: Path) -> None:
    days = [-80, -2, -1, 400, 0]
    assert days_left(path, days, now=0, keep_days=90) == days


def test_what_is_old_after_a_long_pause_goes_a_day_later(path: Path) -> None:
    days = [-203, -202, -201, 0]
    assert days_left(path, days, now=0, keep_days=90) == days
    assert days_left(path, [1], now=1, keep_days=90) == [0, 1]


def test_rare_requests_do_not_stay_for_ever(path: Path) -> None:
    days = range(-400, 1, 40)
    assert days_left(path, days, now=0, keep_days=90) == [-120, -80, -40, 0]


def test_a_step_is_small(path: Path) -> None:
    write_journal(path, [entry(started=NOW) for _ in range(3 * STEP + 7)])
    with opened_journal(path) as db:
        left = [*finish(db, now=NOW + 2 * DAY, keep_days=1)]
    assert left[:4] == [2 * STEP + 7, STEP + 7, 7, 0]


def test_the_oldest_go_where_the_journal_is_too_large(path: Path) -> None:
    entries = [entry(request_id=str(n), conversation="c" * 200) for n in range(10_000)]
    write_journal(path, entries)
    full = path.stat().st_size
    limit = full // 4
    with opened_journal(path) as db:
        left = [*finish(db, most_bytes=limit)]
        newest = db.execute("SELECT max(id), min(id) FROM request").fetchone()
    assert newest == (10_000, 10_001 - left[-1])
    assert 0 < left[-1] < 3000
    assert path.stat().st_size < full / 2


def test_there_is_nothing_to_do_in_an_empty_journal(path: Path) -> None:
    with opened_journal(path) as db:
        assert [*finish(db, most_bytes=0)] == [0]
