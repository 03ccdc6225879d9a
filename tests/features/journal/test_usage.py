"""Sums tell what is known, and of how many requests something is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from byok.features.caps.feature import spending_of
from byok.features.journal.usage import (
    GROUPS,
    JournalSums,
    UsageRow,
    add_rows,
    sum_conversation,
    sum_period,
    sum_usage,
    top_usage,
)
from tests.fakes.journal_entries import NOW, UNKNOWN, entry, write_journal

DAY = 86_400
PLAIN = entry(
    input_tokens=100, output_tokens=10, cache_read_tokens=50, cache_written_tokens=5
)


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
