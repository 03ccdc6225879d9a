"""Sums tell what is known, and of how many requests something is not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from byok.features.journal.usage import GROUPS, UsageRow, add_rows, sum_usage, top_usage
from tests.fakes.journal_entries import NOW, entry, write_journal

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
            PLAIN._replace(
                cost=None,
                input_tokens=None,
                output_tokens=None,
                cache_read_tokens=None,
                cache_written_tokens=None,
                outcome="cancelled",
            ),
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
