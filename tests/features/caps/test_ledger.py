"""What earlier runs spent and what this one does; nothing counts twice."""

import asyncio
import logging
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from byok.features.caps.feature import Ledger, Spent, bounds_of, day_of, spending_of
from tests.fakes.journal_entries import NOW, entry, write_journal

ONE = Spent(1, 110, 0.25)
BEFORE = entry(input_tokens=100, output_tokens=10, conversation="one")
DAY = day_of(NOW)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_earlier_runs_count_and_so_does_this_one(journal: Path) -> None:
    write_journal(journal, [BEFORE, BEFORE._replace(conversation="two")])
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "one")
    ledger.add(DAY, "one", ONE)
    assert ledger.of_day(DAY) == Spent(3, 330, 0.75)
    assert ledger.of_conversation("one") == Spent(2, 220, 0.5)
    await ledger.look_up(DAY, "two")
    assert ledger.of_conversation("two") == ONE
    assert ledger.of_conversation("") == Spent()


async def test_what_this_run_writes_does_not_count_twice(journal: Path) -> None:
    write_journal(journal, [BEFORE])
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "one")
    ledger.add(DAY, "one", ONE)
    ledger.add(DAY, "late", ONE)
    write_journal(journal, [BEFORE, BEFORE._replace(conversation="late")])
    await asyncio.gather(*(ledger.look_up(DAY, "late") for _ in range(8)))
    assert ledger.of_day(DAY) == Spent(3, 330, 0.75)
    assert ledger.of_conversation("late") == ONE
    assert ledger.of_conversation("one") == Spent(2, 220, 0.5)


async def test_a_request_that_ends_before_it_is_in_the_journal_counts(
    journal: Path,
) -> None:
    write_journal(journal, [BEFORE])
    ledger = Ledger(journal)
    ledger.begin()
    ledger.add(DAY, "one", ONE)
    await ledger.look_up(DAY, "one")
    assert ledger.of_day(DAY) == Spent(2, 220, 0.5)


async def test_before_the_first_look_the_journal_counts_alone(journal: Path) -> None:
    ledger = Ledger(journal)
    ledger.add(DAY, "one", ONE)
    write_journal(journal, [BEFORE])
    await ledger.look_up(DAY, "one")
    assert ledger.of_day(DAY) == ONE


async def test_each_day_has_its_own_sum_also_if_the_clock_goes_back(
    journal: Path,
) -> None:
    write_journal(journal, [BEFORE])
    ledger = Ledger(journal)
    tomorrow = day_of(NOW + 86_400)
    await ledger.look_up(DAY, "")
    ledger.add(DAY, "", ONE)
    await ledger.look_up(tomorrow, "")
    assert ledger.of_day(tomorrow) == Spent()
    ledger.add(tomorrow, "", ONE)
    assert (ledger.of_day(DAY), ledger.of_day(tomorrow)) == (ONE.plus(ONE), ONE)


async def test_a_conversation_that_was_forgotten_is_found_in_the_journal(
    journal: Path,
) -> None:
    ledger = Ledger(journal, most=2)
    for name in ("one", "two", "three"):
        await ledger.look_up(DAY, name)
        ledger.add(DAY, name, ONE)
    write_journal(journal, [BEFORE])
    ledger.add(DAY, "one", ONE)  # it began before, so the journal will have it
    await ledger.look_up(DAY, "one")
    assert ledger.of_conversation("one") == ONE


async def test_many_days_are_not_kept(journal: Path) -> None:
    ledger = Ledger(journal)
    for n in range(100):
        await ledger.look_up(day_of(NOW + n * 86_400), "")
    assert len(ledger._days) <= 32


async def test_a_journal_that_cannot_be_read_is_told_once(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal.write_bytes(b"what somebody left here" * 500)
    ledger = Ledger(journal)
    await ledger.look_up(DAY, "one")
    ledger.add(DAY, "one", ONE)
    assert ledger.of_day(DAY) == ONE
    told = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert ["caps count from now on" in r.getMessage() for r in told] == [True]


def test_a_day_ends_at_midnight_of_this_machine() -> None:
    begin, end = bounds_of(date(2026, 1, 1))
    assert day_of(begin) == day_of(end - 1) == date(2026, 1, 1)
    assert day_of(begin - 1) == date(2025, 12, 31)
    assert day_of(end) == date(2026, 1, 2)


@pytest.mark.parametrize(
    ("fields", "spent"),
    [
        ({}, Spent(1, 1230, 0.25)),
        ({"cost": None}, Spent(1, 1230, 0.0, 1)),
        ({"input_tokens": None, "output_tokens": None}, Spent(1, 0, 0.25)),
        ({"model": ""}, Spent(0, 1230, 0.25)),  # byok's own question
        ({"model": "", "cost": None}, Spent(0, 1230, 0.0)),
        ({"attempts": 0, "input_tokens": 0, "output_tokens": 0}, Spent(0, 0, 0.25)),
        ({"outcome": "failed"}, Spent(1, 1230, 0.25)),
    ],
)
def test_unknown_costs_are_counted_apart(fields: dict[str, Any], spent: Spent) -> None:
    assert spending_of(entry(**fields)) == spent


def test_sums_add_every_field() -> None:
    assert Spent(1, 2, 3.0, 4).plus(Spent(10, 20, 30.0, 40)) == Spent(11, 22, 33.0, 44)
