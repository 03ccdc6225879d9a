"""No row of a damaged journal keeps the others from being shown."""

import math
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from byok.journal.buckets import Step
from byok.journal.conversations import latest_conversations
from byok.journal.problems import find_problems
from byok.journal.series import SeriesReader
from byok.journal.sums import sum_period
from byok.journal.totals import whole
from byok.journal.usage import sum_usage
from tests.fakes.journal_entries import NOW, entry, write_journal

READERS: dict[str, Callable[[Path], Any]] = {
    "conversations": lambda path: latest_conversations(path, 9).conversations,
    "problems": lambda path: find_problems(path, NOW - 9).models,
    "series": lambda path: SeriesReader(path).read(NOW, NOW + 9, Step.DAY).buckets,
    "sums": lambda path: sum_period(path, NOW, NOW + 9),
    "usage": lambda path: sum_usage(path, "model", NOW),
}


@pytest.mark.parametrize(
    ("total", "number"),
    [(0.0, 0), (7.0, 7), (-3.0, -3), (math.inf, 2**63 - 1), (-math.inf, 1 - 2**63)],
)
def test_a_sum_is_a_whole_number_of_64_bits(total: float, number: int) -> None:
    assert whole(total) == number


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("column", ["input_tokens", "repairs"])
def test_an_infinite_number_in_a_row_is_read(
    tmp_path: Path, name: str, column: str
) -> None:
    rows = [entry(started=NOW, repairs=1), entry(started=NOW + 1, repairs=1)]
    path = write_journal(tmp_path / "journal.db", rows)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE request SET {column} = 9e999 WHERE id = 1")
    assert READERS[name](path)
