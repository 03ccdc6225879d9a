"""The writer keeps up, keeps to its limits, and never blocks whoever adds."""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.events import Usage
from byok.core.platform.paths import find_paths
from byok.core.record import RequestRecord
from byok.dialects.model_facts import Price
from byok.features.base import Supplies
from byok.features.cost import PriceOf, no_price
from byok.features.journal.writer import STEP, JournalKeeper, tidy
from byok.settings import Settings
from tests.fakes.clock import Clock
from tests.fakes.feature_supplies import make_site
from tests.fakes.journal_entries import (
    NOW,
    QUICK,
    entry,
    make_keeper,
    opened_journal,
    rows_of,
    write_journal,
)
from tests.fakes.patience import PATIENCE

DAY = 86_400


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def test_entries_are_written_in_their_order(path: Path) -> None:
    ids = [f"r{number}" for number in range(500)]
    limits = replace(QUICK, waiting=500)
    with closing(make_keeper(path, limits)) as writer:
        for name in ids:
            writer.add(entry(request_id=name))
    assert rows_of(path, "request_id") == [(name,) for name in ids]
    assert writer.lost == 0


def count(path: Path) -> int:
    # A reader that comes too early would make an empty file, which counts as damaged.
    return len(rows_of(path)) if path.exists() else 0


def test_the_first_entry_is_written_before_others_are_gathered(path: Path) -> None:
    end = time.monotonic() + PATIENCE
    limits = replace(QUICK, gather=10 * PATIENCE)
    with closing(make_keeper(path, limits)) as writer:
        writer.add(entry())
        while not count(path) and time.monotonic() < end:
            time.sleep(0.01)
        assert count(path) == 1


def test_a_full_queue_drops_what_comes_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    limits = replace(QUICK, waiting=10)
    with (
        opened_journal(path) as other,
        closing(make_keeper(path, limits)) as writer,
    ):
        other.execute("BEGIN IMMEDIATE")  # the writer waits for this
        for _ in range(100):
            writer.add(entry())
        assert 80 <= writer.lost <= 90
        other.execute("ROLLBACK")
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert any("faster than" in text for text in told)
    assert f"{writer.lost} requests are missing in the journal" in told
    assert len(told) == 2
    assert len(rows_of(path)) == 100 - writer.lost


@pytest.mark.parametrize(
    "value",
    [
        "\x1b[31m\x07",
        "nul\x00nul",
        "\udcff\ud800",
        "‮abc",
        "'; DROP TABLE request; --",
        "=cmd|' /C calc'!A0",
        "漢字 🙂",
    ],
)
def test_hostile_values_are_only_values(path: Path, value: str) -> None:
    hostile = entry(conversation=value, model_asked=value, model=value)
    write_journal(path, [hostile, entry()])
    stored = value.encode("utf-8", "replace").decode()
    rows = rows_of(path, "conversation, model_asked, model")
    assert rows[0] == (stored, stored, stored)
    assert len(rows) == 2


def test_secrets_are_not_written(path: Path) -> None:
    secret = "canary/0123456789"
    leak, cut = f"byok:one:{secret}", f"{'x' * 185}{secret}"
    with closing(make_keeper(path, secret=secret)) as writer:
        fields = ("conversation", "model_asked", "model", "tool_calls")
        writer.add(entry(**dict.fromkeys(fields, leak)))
        use(writer, 90, no_price)
        record = RequestRecord("r2", endpoint="/chat", trusted=True, model_asked=cut)
        writer.request_finished(record)
    assert b"canary" not in path.read_bytes()
    models = [("byok:one:[redacted]",), (f"{'x' * 185}[redacted]",)]
    assert rows_of(path, "model_asked") == models


def test_old_entries_go_after_the_days_for_which_they_are_kept(path: Path) -> None:
    write_journal(path, [entry(started=NOW - day * DAY) for day in (91, 89, 1, 0)])
    writer = make_keeper(path, clock=lambda: NOW)
    use(writer, 90, no_price)
    wanted = [-89 * DAY, -DAY, 0, 1]
    with closing(writer):
        writer.add(entry(started=NOW + 1))
        while [row[0] - NOW for row in rows_of(path, "started")] != wanted:
            threading.Event().wait(0.01)


def test_tidying_lets_a_new_entry_go_first_and_goes_on_behind_it(path: Path) -> None:
    old = [entry(started=NOW - 91 * DAY) for _ in range(3 * STEP)]
    write_journal(path, [*old, entry(started=NOW - DAY)])
    tidied: list[list[tuple[str]]] = []
    again = threading.Event()

    def look() -> float:
        """Tell the time at each step of tidying, in the thread of the writer."""
        tidied.append(rows_of(path, "request_id"))
        if len(tidied) == 1:
            writer.add(entry(request_id="late"))
        else:
            again.set()
        return NOW

    writer = make_keeper(path, clock=look)
    use(writer, 90, no_price)
    with closing(writer):
        writer.add(entry(request_id="first"))
        assert again.wait(PATIENCE)
    before, behind, *_ = tidied
    assert (len(before), before[-1]) == (3 * STEP + 2, ("first",))
    assert (len(behind), behind[-1]) == (2 * STEP + 3, ("late",))


def test_an_entry_that_cannot_be_written_stops_no_other(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(make_keeper(path)) as writer:
        writer.add(entry(status=2**64))
        while writer.unwritten:
            threading.Event().wait(0.01)
        writer.add(entry(conversation="later"))
    assert rows_of(path, "conversation") == [("later",)]
    assert writer.lost == 1
    assert "requests are not written to the journal" in caplog.text
    assert "Traceback" in caplog.text  # it is a bug, and can be found


NO_LIMIT = 2**60


def count_rows(db: sqlite3.Connection) -> int:
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
        yield count_rows(db)


def days_left(path: Path, days: Sequence[int], now: int, keep_days: int) -> list[float]:
    """Write a request of each day, tidy as if it were day `now`; give those left."""
    write_journal(path, [entry(started=NOW + day * DAY) for day in days])
    with opened_journal(path) as db:
        for _ in finish(db, now=NOW + now * DAY, keep_days=keep_days):
            pass
        rows = db.execute("SELECT started FROM request ORDER BY id").fetchall()
    return [(started - NOW) / DAY for (started,) in rows]


@pytest.mark.parametrize("ahead", [90, 365, 36_500])
@pytest.mark.parametrize("written", [[], [0], [0, 0]])
def test_a_clock_that_is_ahead_costs_a_week_at_most(
    path: Path, ahead: int, written: list[int]
) -> None:
    days = [*range(-90, 0), *(ahead + day for day in written)]
    left = days_left(path, days, now=ahead, keep_days=90)
    assert left == [day for day in days if day >= -1 + 7 - 90]


def test_a_clock_that_jumps_ahead_twice_costs_two_weeks_at_most(path: Path) -> None:
    days = [*range(-90, 0), 400, 800]
    left = days_left(path, days, now=800, keep_days=90)
    assert left == [day for day in days if day >= -1 + 14 - 90]


@pytest.mark.parametrize(
    ("days", "keep_days", "left"),
    [
        ((-3, -1, -2, 0), 1, [-1, 0]),
        ((-80, -2, -1, 400, 0), 90, [-80, -2, -1, 400, 0]),  # the clock was ahead
        ((-203, -202, -201, 0), 90, [-203, -202, -201, 0]),  # after a long pause
        (range(-400, 1, 40), 90, [-120, -80, -40, 0]),
    ],
)
def test_requests_that_are_too_old_go_in_the_end(
    path: Path, days: Sequence[int], keep_days: int, left: list[int]
) -> None:
    assert days_left(path, days, now=0, keep_days=keep_days) == left
    if days[0] == -203:
        assert days_left(path, [1], now=1, keep_days=90) == [0, 1]


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
    path.parent.mkdir()
    with opened_journal(path) as db:
        assert [*finish(db, most_bytes=0)] == [0]


@pytest.fixture
def journal_file() -> Path:
    return find_paths().journal


@pytest.fixture
def journal() -> Iterator[JournalKeeper]:
    with closing(JournalKeeper(make_site(lambda: NOW), QUICK)) as journal:
        use(journal, 90, lambda upstream, model: Price(1.0, 1.0))
        yield journal


def use(
    journal: JournalKeeper, keep_days: int, price_of: PriceOf, **section: Any
) -> None:
    section["keep_days"] = keep_days
    settings = Settings.model_validate({"journal": section})
    journal.configure(Supplies(settings, price_of))


def end_request(journal: JournalKeeper, endpoint: str = "/chat", **fields: Any) -> None:
    record = RequestRecord(endpoint, endpoint=endpoint, trusted=True, clock=Clock())
    for name, value in fields.items():
        setattr(record, name, value)
    journal.request_started(record)
    record.finish(200)
    journal.request_finished(record)


def test_requests_of_clients_are_kept(
    journal_file: Path, journal: JournalKeeper
) -> None:
    end_request(journal)
    end_request(journal, "/health")
    end_request(journal, "/byok/daemon")
    end_request(journal, "/find-missing", trusted=False)
    end_request(journal, "/find-missing")
    journal.close()
    assert rows_of(journal_file, "endpoint") == [("/chat",), ("/find-missing",)]
    assert journal.lost == 0


@pytest.mark.parametrize(("keeps", "kept"), [(True, "shop"), (False, "")])
def test_a_folder_is_kept_by_its_name_if_at_all(
    journal_file: Path, journal: JournalKeeper, keeps: bool, kept: str
) -> None:
    use(journal, 90, no_price, folder_names=keeps)
    end_request(journal, folders=("/home/mia/shop", "/home/mia/other"))
    journal.close()
    assert rows_of(journal_file, "folder") == [(kept,)]


def test_prices_are_those_of_the_newest_settings(
    journal_file: Path, journal: JournalKeeper
) -> None:
    used: dict[str, Any] = {
        "upstream": "one",
        "model": "m",
        "attempts": 1,
        "usage": Usage(2_000_000),
    }
    end_request(journal, **used)
    use(journal, 90, lambda upstream, model: Price(2.0))
    end_request(journal, **used)
    use(journal, 90, lambda upstream, model: None)
    end_request(journal, **used)
    journal.close()
    assert rows_of(journal_file, "cost") == [(2.0,), (4.0,), (None,)]


def test_a_journal_keeps_nothing_before_it_is_configured(journal_file: Path) -> None:
    with closing(JournalKeeper(make_site(), QUICK)) as journal:
        end_request(journal)
    assert not journal_file.exists()
