"""Migrations: from the first version to the newest one, whole or not at all."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.index.store import migrations
from byok.index.store.migrations import MIGRATIONS, Migration, migrate, rehearse
from byok.index.store.schema import VERSION, create_tables
from tests.fakes.program import ROOT
from tests.fakes.stores import open_store
from tests.fakes.version_1 import SQL, write_version_1


@pytest.fixture
def old() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(SQL.read_text("utf-8"))
        db.execute("PRAGMA foreign_keys = ON")
        yield db


def form(db: sqlite3.Connection) -> dict[str, list[object]]:
    """Return all that SQLite knows of the tables, but not how it was written."""
    tables = db.execute(
        "SELECT name, wr, strict FROM pragma_table_list WHERE name NOT LIKE 'sqlite%'"
    ).fetchall()
    return {
        name: [
            (without_rowid, strict),
            db.execute(f"PRAGMA table_xinfo({name})").fetchall(),
            sorted(db.execute(f"PRAGMA foreign_key_list({name})").fetchall()),
            sorted(
                (index[2:], db.execute(f"PRAGMA index_xinfo({index[1]})").fetchall())
                for index in db.execute(f"PRAGMA index_list({name})").fetchall()
            ),
        ]
        for name, without_rowid, strict in tables
    }


def test_migration_has_one_step_for_each_version() -> None:
    assert [step.to for step in MIGRATIONS] == list(range(2, VERSION + 1))


def test_migration_leads_to_the_schema_of_a_new_database(
    old: sqlite3.Connection,
) -> None:
    assert rehearse(old)
    migrate(old)
    with closing(sqlite3.connect(":memory:")) as new:
        create_tables(new)
        assert form(old) == form(new)
    assert old.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert old.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_migration_keeps_versions_that_crashed_the_parser(
    old: sqlite3.Connection,
) -> None:
    old.execute("INSERT INTO killer VALUES(x'0102')")
    migrate(old)
    assert old.execute("SELECT name FROM parser_crasher").fetchall() == [(b"\1\2",)]


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE killer",
        "DROP TABLE checkpoint",
        "ALTER TABLE blob RENAME COLUMN used TO asked",
    ],
)
def test_migration_refuses_a_database_that_lacks_something(
    old: sqlite3.Connection, damage: str
) -> None:
    old.execute(damage)
    assert not rehearse(old)


def test_migration_rehearsal_changes_nothing(old: sqlite3.Connection) -> None:
    before = form(old)
    assert rehearse(old)
    assert form(old) == before


def test_a_row_that_referred_to_nothing_before_does_not_stop_it(
    old: sqlite3.Connection,
) -> None:
    old.execute("PRAGMA foreign_keys = OFF")
    old.execute("INSERT INTO content VALUES(99, x'', 0)")
    migrate(old)
    assert old.execute("PRAGMA user_version").fetchone() == (VERSION,)


def _break(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM blob")
    raise KeyboardInterrupt


def _dangle(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO content VALUES(99, x'', 0)")


@pytest.mark.parametrize(
    ("last", "error"),
    [(_break, KeyboardInterrupt), (_dangle, sqlite3.IntegrityError)],
)
def test_migration_step_that_fails_rolls_all_steps_back(
    old: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    last: Callable[[sqlite3.Connection], None],
    error: type[BaseException],
) -> None:
    old.execute("INSERT INTO blob(name, path, size, state) VALUES(x'00', 'p', 1, 1)")
    before = form(old)
    steps = (*MIGRATIONS, Migration(VERSION + 1, last))
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    with pytest.raises(error):
        migrate(old)
    assert form(old) == before
    assert old.execute("SELECT count(*) FROM blob").fetchone() == (1,)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    assert old.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.case("F46")
@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
@pytest.mark.parametrize(
    "kills",
    [
        "moments 40",
        pytest.param("moments 6", marks=pytest.mark.slow),
        pytest.param("random 8 20", marks=pytest.mark.slow),
    ],
)
def test_a_migration_that_is_killed_loses_nothing(kills: str) -> None:
    command = [sys.executable, "-m", "tests.fakes.migration_kills", *kills.split()]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "nothing lost" in ran.stdout


def test_migration_of_version_1_answers_the_same_without_new_work(
    tmp_path: Path,
) -> None:
    write_version_1(tmp_path, count=5)
    store = open_store(tmp_path)
    with store.reading() as db:
        assert (
            db.execute("SELECT count(*) FROM blob WHERE state = 0").fetchone()[0] == 0
        )
    store.close()
