"""The connection outlives damage and deletion, and warns once."""

import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from byok.features.journal.schema import JOURNAL
from byok.features.journal.writer import journal_file
from byok.storage.database import HelpDatabase
from tests.fakes.journal_entries import entry, rows_of, write_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


@pytest.fixture
def connection(path: Path) -> Iterator[HelpDatabase]:
    with closing(journal_file(path)) as connection:
        yield connection


def count(db: sqlite3.Connection) -> int:
    number: int = db.execute("SELECT count(*) FROM request").fetchone()[0]
    return number


def insert(db: sqlite3.Connection) -> None:
    marks = ", ".join("?" * len(entry()))
    columns = ", ".join(entry()._fields)
    db.execute(f"INSERT INTO request ({columns}) VALUES ({marks})", entry())


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


@pytest.mark.case("F60")
def test_two_that_begin_a_journal_at_once_lose_no_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A daemon and its successor do, if no request has ended before."""

    def write(path: Path, begin: Barrier) -> None:
        begin.wait()
        with closing(journal_file(path)) as journal:
            journal.use(insert)

    for attempt in range(20):
        path, begin = tmp_path / str(attempt) / "journal.db", Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, path, begin) for _ in range(4)]
        for writer in writers:
            writer.result()
        assert len(rows_of(path)) == 4
    assert warnings(caplog) == []


@pytest.mark.case("F60")
def test_a_journal_that_was_deleted_is_begun_anew(
    path: Path, connection: HelpDatabase
) -> None:
    write_journal(path, [entry()])
    assert connection.use(count) == 1
    path.unlink()
    assert connection.use(count) == 0
    assert path.exists()


@pytest.mark.case("F60")
def test_damage_that_shows_later_is_put_aside(
    path: Path, connection: HelpDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    write_journal(path, [entry(conversation="c" * 200) for _ in range(2000)])
    assert connection.use(count) == 2000
    connection.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    path.write_bytes(damaged)

    def forget(db: sqlite3.Connection) -> int:
        db.execute("DELETE FROM request")
        return count(db)

    assert connection.use(forget) == 0
    assert path.with_name("journal.db.damaged-1").read_bytes() == damaged
    assert rows_of(path) == []
    assert len(warnings(caplog)) == 1


def test_a_later_versions_file_switches_it_off_with_one_message(
    path: Path, connection: HelpDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    write_journal(path, [entry()])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {JOURNAL.version + 1}")
    before = path.read_bytes()
    assert [connection.use(count) for _ in range(3)] == [None] * 3
    assert path.read_bytes() == before
    assert len(warnings(caplog)) == 1
    assert "later version" in caplog.text


def test_where_there_can_be_no_file_it_warns_once_and_tries_again(
    path: Path, connection: HelpDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.write_text("not a folder")
    assert [connection.use(count) for _ in range(3)] == [None] * 3
    assert len(warnings(caplog)) == 1
    path.parent.unlink()
    assert connection.use(count) == 0


@pytest.mark.case("F60")
def test_a_locked_file_loses_one_batch_only(
    path: Path, connection: HelpDatabase
) -> None:
    def forget(db: sqlite3.Connection) -> bool:
        db.execute("PRAGMA busy_timeout = 0")
        db.execute("DELETE FROM request")
        return True

    assert connection.use(forget)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert connection.use(forget) is None
        other.execute("ROLLBACK")
    assert connection.use(forget)
