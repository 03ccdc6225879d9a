"""Transactions: whole or not at all, and one thread after another."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.embeddings.store.connection import Connection
from byok.errors import NotReady
from tests.fakes.vectors import Rows


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    made = Connection(tmp_path / "vectors.db", Rows(tmp_path / "data.db").path)
    yield made
    made.close()


def count(connection: Connection) -> int:
    with connection.reading() as db:
        return int(db.execute("SELECT count(*) FROM key").fetchone()[0])


def test_a_transaction_that_fails_leaves_nothing(connection: Connection) -> None:
    with pytest.raises(KeyError), connection.writing() as db:
        db.execute("INSERT INTO key(name) VALUES(x'01')")
        raise KeyError
    with pytest.raises(NotReady, match="no such table"), connection.writing() as db:
        db.execute("INSERT INTO key(name) VALUES(x'01')")
        db.execute("INSERT INTO none_such VALUES(1)")
    assert count(connection) == 0
    with connection.writing() as db:
        db.execute("INSERT INTO key(name) VALUES(x'01')")
    assert count(connection) == 1


def test_threads_wait_for_each_other(connection: Connection) -> None:
    def write(number: int) -> None:
        with connection.writing() as db, connection.reading() as same:
            db.execute("INSERT INTO key(name) VALUES(?)", (str(number).encode(),))
            assert same is db

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(connection) == 8


def test_the_end_notes_that_all_is_well(tmp_path: Path) -> None:
    Connection(tmp_path / "vectors.db", Rows(tmp_path / "data.db").path).close()
    db = sqlite3.connect(tmp_path / "vectors.db")
    assert db.execute("SELECT value FROM meta WHERE key = 'open'").fetchone() == (0,)
    db.close()
