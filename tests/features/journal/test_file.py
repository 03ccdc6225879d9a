"""The file is private, survives what befalls it, and is never lost in silence."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.core.errors import CannotStart
from byok.features.journal.reader import read_journal
from byok.features.journal.requests import last_entries
from byok.features.journal.schema import JOURNAL, MENDED
from tests.fakes.disk import fill, mounted
from tests.fakes.journal_entries import (
    entry,
    opened_journal,
    rows_of,
    write_journal,
    write_version_1,
)

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def open_and_close(path: Path) -> None:
    with opened_journal(path):
        pass


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_journal_on_a_full_disk_is_not_called_damaged(
    path: Path, tmp_path: Path
) -> None:
    """SQLite only speaks of I/O where it cannot make its file beside the log."""
    write_journal(path, [entry()])
    with mounted(tmp_path / "small", "1m") as disk, opened_journal(path) as db:
        db.execute("UPDATE request SET model = 'other'")
        for end in ("", "-wal"):  # as after a kill and a restart of the machine
            shutil.copy(f"{path}{end}", disk)
        fill(disk / "filler")
        with pytest.raises(CannotStart) as caught:
            last_entries(disk / path.name, 1)
    assert caught.value.code == "storage_full"


@posix
def test_a_journal_is_for_its_owner_only(path: Path) -> None:
    with opened_journal(path) as db:
        db.execute("DELETE FROM request")
        beside = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
        assert [mode(file) for file in beside] == [0o600] * 3
    path.chmod(0o644)
    open_and_close(path)
    assert mode(path) == 0o600


def test_what_is_planted_in_the_file_cannot_call_functions(path: Path) -> None:
    called = list[int]()
    with opened_journal(path) as db:
        db.create_function("spy", 0, lambda: called.append(1))
        db.execute("CREATE TRIGGER t AFTER DELETE ON request BEGIN SELECT spy(); END")
    write_journal(path, [entry()])
    with opened_journal(path) as db:
        db.create_function("spy", 0, lambda: called.append(1))
        with pytest.raises(sqlite3.OperationalError, match="unsafe use of spy"):
            db.execute("DELETE FROM request")
    assert not called


@pytest.mark.case("F60")
def test_a_later_versions_file_is_left_alone(path: Path) -> None:
    write_journal(path, [entry()])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {JOURNAL.version + 1}")
    before = path.read_bytes()
    with pytest.raises(CannotStart, match="later version") as caught:
        open_and_close(path)
    assert caught.value.code == "newer_data"
    with pytest.raises(CannotStart, match="later version"):
        count(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]


def test_an_older_versions_file_is_read_as_it_is_until_it_is_written(
    tmp_path: Path,
) -> None:
    path = write_version_1(tmp_path / "journal.db", [entry(request_id="old")])
    before = path.read_bytes()
    assert [stored.entry for stored in last_entries(path, 9)] == [
        entry(request_id="old", folder="")
    ]
    assert path.read_bytes() == before
    write_journal(path, [entry(request_id="new", tool_calls="view")])
    kept = rows_of(path, "request_id, tool_calls")
    assert kept == [("old", ""), ("new", "view")]
    assert [s.entry.tool_calls for s in last_entries(path, 9)] == ["", "view"]
    assert not list(tmp_path.glob("*damaged*"))


def test_an_older_versions_file_is_read_while_its_daemon_writes(tmp_path: Path) -> None:
    path = write_version_1(tmp_path / "journal.db", [entry()])
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("DELETE FROM request")
        writer.commit()
        assert path.with_name("journal.db-wal").exists()
        assert count(path) == 0


def test_reading_makes_no_file(path: Path) -> None:
    assert count(path) is None
    assert not path.parent.exists()
    write_journal(path, [entry()])
    assert count(path) == 1
    with pytest.raises(CannotStart, match="readonly"):
        read_journal(path, lambda db: db.execute("DELETE FROM request"), None)
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]


@pytest.mark.parametrize(
    "content", [b"no database at all" * 500, b"SQLite format 3\0", b""]
)
def test_a_damaged_journal_cannot_be_read_and_stays(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CannotStart) as caught:
        count(path)
    assert caught.value.code == "corrupt_data"
    assert path.read_bytes() == content


def count(path: Path) -> int | None:
    query = "SELECT count(*) FROM request"
    return read_journal(path, lambda db: int(db.execute(query).fetchone()[0]), None)


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
