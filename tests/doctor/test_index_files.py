"""Reading the database from outside."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from byok.doctor.index_files import (
    files_of,
    find_damage,
    workspaces_in,
)
from byok.index.store.schema import INDEX
from byok.storage.database import open_unchanged

ROOT = "/w/bakery"
ROWS = [
    ("a.py", None),
    ("src/b.py", None),
    ("src/deep/er/c.py", None),
    ("src/x.bin", "binary"),
    ("big.txt", "too-large"),
    ("logs/more.bin", "binary"),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "data.db"
    db = sqlite3.connect(file)
    INDEX.create_tables(db)
    db.execute("INSERT INTO workspace(id, root, kept) VALUES(1, ?, 1)", (ROOT,))
    db.execute("INSERT INTO workspace(id, root, kept) VALUES(2, '/w/once', 0)")
    db.executemany("INSERT INTO file VALUES(1, ?, 1, 1, 1, 1, NULL, ?)", ROWS)
    db.commit()
    db.close()
    return file


def test_files_skipped_ones_and_folders_are_counted(database: Path) -> None:
    assert workspaces_in(database) == [ROOT]
    found = files_of(database, ROOT)
    assert (found.files, found.skipped) == (3, {"binary": 2, "too-large": 1})
    assert found.folders == 5  # the root, src, src/deep, src/deep/er, logs
    assert files_of(database, "/w/other") == (0, {}, 1)


def test_nothing_can_be_written_and_nothing_is_left_beside(database: Path) -> None:
    before = database.read_bytes()
    with (
        closing(open_unchanged(database)) as db,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        db.execute("DELETE FROM workspace")
    assert find_damage(database, 20) == ""
    assert [*database.parent.iterdir()] == [database]
    assert database.read_bytes() == before


@pytest.mark.parametrize("page", [0, 1, 3], ids=str)
def test_damage_is_found(database: Path, page: int) -> None:
    raw = bytearray(database.read_bytes())
    raw[page * 4096 : (page + 1) * 4096] = b"\x5a" * 4096
    database.write_bytes(raw)
    assert find_damage(database, 20)


def test_what_cannot_be_looked_at_in_time_is_no_damage(database: Path) -> None:
    db = sqlite3.connect(database)
    db.execute("CREATE TABLE large(x)")
    db.executemany("INSERT INTO large VALUES(?)", [(b"x" * 300,)] * 20_000)
    db.commit()
    db.close()
    assert find_damage(database, -1) == ""


def test_a_missing_database_is_said() -> None:
    assert "unable to open" in find_damage(Path("/no/such/data.db"), 1)
