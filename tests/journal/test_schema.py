"""The tables, and steps from older versions."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from byok.journal.entry import JournalEntry
from byok.journal.schema import (
    APPLICATION,
    MENDED,
    MIGRATIONS,
    VERSION,
    JournalStep,
    check_columns,
    migrate,
    show_requests,
    version_of,
)
from tests.fakes.journal_entries import VERSION_1, entry, write_version_1
from tests.fakes.program import ROOT

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


def indexes(db: sqlite3.Connection) -> dict[str, str]:
    """The SQL of each index, without differences of white space."""
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
    return {name: " ".join(sql.split()) for name, sql in rows}


def test_version_1_becomes_what_a_new_file_is(db: sqlite3.Connection) -> None:
    db.executescript(VERSION_1)
    migrate(db)
    check_columns(db)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        migrate(new)
        facts = "PRAGMA table_info(request)"
        assert db.execute(facts).fetchall() == new.execute(facts).fetchall()
        assert indexes(db) == indexes(new)


def test_an_older_journal_is_read_with_the_columns_of_this_version(
    tmp_path: Path,
) -> None:
    path = write_version_1(tmp_path / "journal.db", [entry(loop="not kept")])
    before = path.read_bytes()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        show_requests(db, 1)
        row = db.execute(f"SELECT {', '.join(JournalEntry._fields)} FROM request")
        assert JournalEntry(*row.fetchone()) == entry()
        assert db.execute("SELECT max(id) FROM request").fetchone() == (1,)
    assert path.read_bytes() == before


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
    migrate(db)
    plan = db.execute(f"EXPLAIN QUERY PLAN SELECT * FROM request WHERE {condition}")
    assert index in plan.fetchone()[3]


KILLED = """
import os, sqlite3, sys
from byok.journal.schema import migrate
db = sqlite3.connect(sys.argv[1], isolation_level=None)
left = int(sys.argv[2])
def kill(statement):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), 9)
db.set_trace_callback(kill)
migrate(db)
print("migrated")
"""


def test_a_kill_between_leaves_the_old_version_or_the_new_one(tmp_path: Path) -> None:
    path = write_version_1(tmp_path / "journal.db", [entry()] * 3)
    versions = []
    for moment in count(1):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(path), str(moment)],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            timeout=60,
        )
        with closing(sqlite3.connect(path)) as db:
            versions.append(version_of(db))
            assert db.execute("SELECT count(*) FROM request").fetchone() == (3,)
            assert ("loop" in columns(db)) == (versions[-1] == VERSION)
        if b"migrated" in done.stdout:
            break
    assert versions == [1] * (len(versions) - 1) + [VERSION]
    assert len(versions) > len(MIGRATIONS[0].statements)


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
