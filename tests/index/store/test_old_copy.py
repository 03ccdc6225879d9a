"""The copy from before a migration: complete, private, byok's own, and gone in time."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.errors import NotReady
from byok.index.store import old_copy
from byok.index.store.database import Database
from byok.index.store.old_copy import make_copy, remove_copy
from tests.fakes.disk import fill, mounted
from tests.fakes.stores import open_store
from tests.fakes.version_1 import write_version_1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as made:
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID")
        made.execute("INSERT INTO meta VALUES('some', 'thing')")
        yield made


def rows(copy: Path) -> dict[str, str]:
    with closing(sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True)) as db:
        return dict(db.execute("SELECT key, value FROM meta").fetchall())


def names(folder: Path) -> set[str]:
    """Return the files beside the database and its log."""
    return {p.name for p in folder.iterdir()} - {
        "data.db", "data.db-wal", "data.db-shm",
    }  # fmt: skip


def test_the_copy_is_whole_private_and_alone(
    db: sqlite3.Connection, path: Path
) -> None:
    copy = make_copy(db, path, 7)
    assert rows(copy)["some"] == "thing"  # which is still in the log of the database
    assert copy.name.startswith("data.db.v7-")
    assert os.name != "posix" or stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert names(path.parent) == {copy.name}


def test_a_copy_that_was_begun_before_is_replaced(
    db: sqlite3.Connection, path: Path
) -> None:
    copy = make_copy(db, path, 1)
    copy.write_bytes(b"half of")
    assert make_copy(db, path, 1) == copy
    assert rows(copy)["some"] == "thing"


def test_a_copy_is_removed_once_and_nothing_else(
    db: sqlite3.Connection, path: Path
) -> None:
    like_it = path.with_name("data.db.v1-0123456789abcdef")
    like_it.write_bytes(b"of the user")
    remove_copy(db, path)
    make_copy(db, path, 1)
    remove_copy(db, path)
    remove_copy(db, path)
    assert names(path.parent) == {like_it.name}
    assert rows_of(db) == {"some": "thing"}


def rows_of(db: sqlite3.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT key, value FROM meta").fetchall())


@pytest.mark.parametrize(
    "note", ["../precious", "precious", "data.db", "data.db.v1-0123", "", None, 7]
)
def test_old_copy_with_a_note_of_another_form_is_not_removed(
    db: sqlite3.Connection, path: Path, note: object
) -> None:
    path.with_name("precious").write_bytes(b"x")
    db.execute("INSERT INTO meta VALUES('old_copy', ?)", (note,))
    remove_copy(db, path)
    assert names(path.parent) == {"precious"}
    assert path.exists()


def test_old_copy_that_is_no_plain_file_is_left_alone(
    db: sqlite3.Connection, path: Path
) -> None:
    first = make_copy(db, path, 1)
    first.unlink()
    first.symlink_to(path)
    second = make_copy(db, path, 1)
    assert second != first
    assert rows(second)["some"] == "thing"
    remove_copy(db, path)
    assert names(path.parent) == {first.name}


def test_the_copy_stays_until_the_next_start_that_succeeds(tmp_path: Path) -> None:
    write_version_1(tmp_path, count=3)
    open_store(tmp_path).close()
    (copy,) = tmp_path.glob("data.db.v1-*")
    Database(tmp_path / "data.db").close()  # a start that got no further
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


def test_an_error_of_the_system_is_told(
    db: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(old_copy, "sync_folder", fail)
    with pytest.raises(NotReady, match="Input/output error"):
        make_copy(db, path, 1)
    assert names(path.parent) == set()
