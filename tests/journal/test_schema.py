"""The tables, and steps from older versions."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from byok.journal.entry import JournalEntry
from byok.journal.schema import (
    APPLICATION,
    MIGRATIONS,
    VERSION,
    JournalStep,
    check_columns,
    migrate,
    version_of,
)

ADD = JournalStep(VERSION + 1, ["ALTER TABLE request ADD COLUMN mood TEXT"])


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        yield db


def columns(db: sqlite3.Connection) -> list[str]:
    return [row[1] for row in db.execute("PRAGMA table_info(request)")]


def test_an_empty_file_gets_the_tables(db: sqlite3.Connection) -> None:
    assert version_of(db) == 0
    migrate(db)
    assert version_of(db) == VERSION
    assert columns(db) == ["id", *JournalEntry._fields]
    check_columns(db)


def test_every_version_has_a_step() -> None:
    assert [step.to for step in MIGRATIONS] == list(range(2, VERSION + 1))


def test_an_older_version_keeps_its_rows(db: sqlite3.Connection) -> None:
    migrate(db)
    values = ", ".join(["0"] * len(JournalEntry._fields))
    db.execute(f"INSERT INTO request VALUES (7, {values})")
    migrate(db, (*MIGRATIONS, ADD), VERSION + 1)
    assert version_of(db) == VERSION + 1
    assert db.execute("SELECT id, mood FROM request").fetchall() == [(7, None)]


def test_a_step_that_fails_changes_nothing(db: sqlite3.Connection) -> None:
    migrate(db)
    broken = JournalStep(VERSION + 1, [*ADD.statements, "no SQL"])
    with pytest.raises(sqlite3.OperationalError):
        migrate(db, (broken,), VERSION + 1)
    assert version_of(db) == VERSION
    assert columns(db) == ["id", *JournalEntry._fields]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE mine (a)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
    ],
)
def test_another_programs_database_has_no_version(
    db: sqlite3.Connection, statement: str
) -> None:
    db.execute(statement)
    with pytest.raises(sqlite3.DatabaseError, match="another program"):
        version_of(db)


def test_a_journal_without_a_column_is_damaged(db: sqlite3.Connection) -> None:
    migrate(db)
    db.execute("ALTER TABLE request DROP COLUMN cost")
    with pytest.raises(sqlite3.DatabaseError, match="lacks cost"):
        check_columns(db)


def test_the_mark_spells_byok() -> None:
    assert APPLICATION.to_bytes(4, "big") == b"byok"
