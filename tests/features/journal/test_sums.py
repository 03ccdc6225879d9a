"""What the journal adds up for caps."""

from pathlib import Path

import pytest

from byok.features.caps.feature import spending_of
from byok.features.journal.usage import JournalSums, sum_conversation, sum_period
from tests.fakes.journal_entries import NOW, entry, write_journal

PLAIN = entry(input_tokens=100, output_tokens=10, cost=0.25)
ENTRIES = [
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
def path(tmp_path: Path) -> Path:
    return write_journal(tmp_path / "journal.db", ENTRIES)


def test_a_period_has_its_begin_but_not_its_end(path: Path) -> None:
    assert sum_period(path, NOW, NOW + 20) == JournalSums(4, 450, 1.0, 2)
    assert sum_period(path, NOW + 20, NOW + 21) == JournalSums(1, 110, 0.25, 0)
    assert sum_period(path, NOW + 21, NOW + 99) == JournalSums()


def test_only_entries_up_to_a_number_count(path: Path) -> None:
    assert sum_period(path, NOW, NOW + 20, last=1) == JournalSums(1, 110, 0.25, 0)
    assert sum_period(path, NOW, NOW + 20, last=0) == JournalSums()
    assert sum_conversation(path, "two", last=1) == JournalSums()


def test_a_conversation_is_its_whole_id(path: Path) -> None:
    assert sum_conversation(path, "two") == JournalSums(1, 110, 0.25, 0)
    for other in ("tw", "", "two' OR 1", "\ud83d"):
        assert sum_conversation(path, other) == JournalSums()


def test_the_journal_counts_as_memory_does(path: Path) -> None:
    in_memory = JournalSums()
    for one in ENTRIES:
        in_memory = in_memory.plus(spending_of(one))
    assert sum_period(path, 0, NOW * 2) == in_memory
