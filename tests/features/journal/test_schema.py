"""The tables, and those of older versions."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.features.journal.schema import JOURNAL, MENDED
from tests.fakes.journal_entries import entry, opened_journal, write_version_1


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        yield db


def indexes(db: sqlite3.Connection) -> dict[str, str]:
    """The SQL of each index, without differences of white space."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
    return {name: " ".join(sql.split()) for name, sql in rows}


def test_version_1_becomes_what_a_new_file_is(tmp_path: Path) -> None:
    path = write_version_1(tmp_path / "journal.db", [entry()])
    with opened_journal(path) as db, opened_journal(tmp_path / "new.db") as new:
        facts = "PRAGMA table_info(request)"
        assert db.execute(facts).fetchall() == new.execute(facts).fetchall()
        assert indexes(db) == indexes(new)


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("outcome = 'failed' AND started > 1", "request_failed"),
        (f"{MENDED} AND started > 1", "request_mended"),
        ("model <> '' AND upstream = 'one' AND model = 'm'", "request_model"),
    ],
)
def test_an_index_is_used_for_the_words_that_it_was_made_for(
    db: sqlite3.Connection, condition: str, index: str
) -> None:
    JOURNAL.create_tables(db)
    plan = db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM request WHERE {condition}")
    assert index in plan.fetchone()[3]
