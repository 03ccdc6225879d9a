"""Migrations: from the first version to the newest one, whole or not at all.

The copy from before: complete, private, byok's own, and gone in time.
"""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.core.errors import NotReady
from byok.search.index.store.schema import INDEX
from byok.storage.database import Database, can_migrate, migrate, remove_old_copy
from byok.storage.kind import DatabaseKind, MigrationStep
from tests.fakes.disk import fill, mounted
from tests.fakes.program import ROOT
from tests.fakes.stores import open_store
from tests.fakes.version_1 import SQL, write_version_1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def old(path: Path) -> Iterator[sqlite3.Connection]:
    """A database of version 1."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(SQL.read_text("utf-8"))
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("INSERT INTO meta VALUES('some', 'thing')")
        yield db


def with_step(change: Callable[[sqlite3.Connection], None]) -> DatabaseKind:
    """The index's tables with one more version."""
    version = INDEX.version + 1
    return replace(
        INDEX, version=version, steps=(*INDEX.steps, MigrationStep(version, change))
    )


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


def test_migration_leads_to_the_schema_of_a_new_database(
    old: sqlite3.Connection, path: Path
) -> None:
    assert can_migrate(old, INDEX)
    migrate(old, path, INDEX)
    with closing(sqlite3.connect(":memory:")) as new:
        INDEX.create_tables(new)
        assert form(old) == form(new)
    assert old.execute("PRAGMA user_version").fetchone() == (INDEX.version,)
    assert old.execute("PRAGMA foreign_keys").fetchone() == (1,)


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
    assert not can_migrate(old, INDEX)


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
    path: Path,
    last: Callable[[sqlite3.Connection], None],
    error: type[BaseException],
) -> None:
    old.execute("INSERT INTO blob(name, path, size, state) VALUES(x'00', 'p', 1, 1)")
    before = form(old)
    with pytest.raises(error):
        migrate(old, path, with_step(last))
    assert form(old) == before
    assert old.execute("SELECT count(*) FROM blob").fetchone() == (1,)
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
    assert old.execute("PRAGMA foreign_keys").fetchone() == (1,)


@pytest.mark.case("F46")
@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
@pytest.mark.slow
def test_a_migration_that_is_killed_loses_nothing() -> None:
    command = [sys.executable, "-m", "tests.fakes.version_1", "30"]
    subprocess.run(command, cwd=ROOT, check=True)


def rows(copy: Path) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
        return dict(db.execute("SELECT key, value FROM meta").fetchall())


def names(folder: Path) -> set[str]:
    """Return the files beside the database and its log."""
    return {p.name for p in folder.iterdir()} - {
        "data.db", "data.db-wal", "data.db-shm",
    }  # fmt: skip


def copy_of(db: sqlite3.Connection, path: Path) -> Path:
    """Migrate, and return the copy that was made; the database is old again then."""
    with pytest.raises(KeyboardInterrupt):
        migrate(db, path, with_step(_break))
    return path.with_name(
        db.execute("SELECT value FROM meta WHERE key = 'old_copy'").fetchone()[0]
    )


def test_the_copy_is_whole_and_private_and_is_removed_alone(
    old: sqlite3.Connection, path: Path
) -> None:
    like_it = path.with_name("data.db.v1-0123456789abcdef")
    like_it.write_bytes(b"of the user")
    remove_old_copy(old, path)
    copy = copy_of(old, path)
    assert rows(copy)["some"] == "thing"  # which is still in the log of the database
    assert copy.name.startswith("data.db.v1-")
    assert os.name != "posix" or stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert names(path.parent) == {like_it.name, copy.name}
    remove_old_copy(old, path)
    remove_old_copy(old, path)
    assert names(path.parent) == {like_it.name}
    noted = "SELECT value FROM meta WHERE key = 'old_copy'"
    assert old.execute(noted).fetchone() is None


@pytest.mark.parametrize(
    "note", ["../precious", "precious", "data.db", "data.db.v1-0123", "", None, 7]
)
def test_old_copy_with_a_note_of_another_form_is_not_removed(
    old: sqlite3.Connection, path: Path, note: object
) -> None:
    path.with_name("precious").write_bytes(b"x")
    old.execute("INSERT INTO meta VALUES('old_copy', ?)", (note,))
    remove_old_copy(old, path)
    assert names(path.parent) == {"precious"}
    assert path.exists()


def test_old_copy_that_is_no_plain_file_is_left_alone(
    old: sqlite3.Connection, path: Path
) -> None:
    first = copy_of(old, path)
    first.unlink()
    first.symlink_to(path)
    second = copy_of(old, path)
    assert second != first
    assert rows(second)["some"] == "thing"
    remove_old_copy(old, path)
    assert names(path.parent) == {first.name}


def test_the_copy_stays_until_the_next_start_that_succeeds(tmp_path: Path) -> None:
    write_version_1(tmp_path, count=3)
    open_store(tmp_path).close()
    (copy,) = tmp_path.glob("data.db.v1-*")
    Database(tmp_path / "data.db", INDEX).close()  # a start that got no further
    assert copy.exists()
    open_store(tmp_path).close()
    assert names(tmp_path) == {"data.db.lock", "index"}


def test_a_full_disk_leaves_the_old_version_and_no_copy(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "8m") as disk:
        made = write_version_1(disk, count=3, bulk=3 * 2**20)
        fill(disk / "filler")
        os.truncate(disk / "filler", (disk / "filler").stat().st_size - 2**20)
        for _ in range(2):
            with pytest.raises(NotReady, match="full"):
                open_store(disk)
            assert list(disk.glob("data.db.v*")) == []
        (disk / "filler").unlink()
        store = open_store(disk)
        with store.reading() as db:
            count = db.execute("SELECT count(*) FROM content").fetchone()[0]
        assert count == len(made.uploads) + 1
        store.close()


def test_an_error_of_the_system_while_the_copy_is_made_is_told(
    old: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(NotReady):
        migrate(old, path, INDEX)
    assert names(path.parent) == set()
    assert old.execute("PRAGMA user_version").fetchone() == (1,)
