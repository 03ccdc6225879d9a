"""Rows of workspaces: declared once, kept or forgotten."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.search.index.store.schema import INDEX
from byok.search.index.store.workspaces import (
    declare,
    files_of,
    find_id,
    kept_roots,
    unused_since,
)

A, B = Path("/a"), Path("/b")


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        INDEX.create_tables(made)
        yield made


def test_workspace_keeps_its_id_and_stays_declared(db: sqlite3.Connection) -> None:
    first = declare(db, A, 7, keep=True)
    assert declare(db, A, 8, keep=False) == first
    assert declare(db, B, 8, keep=False) != first
    assert kept_roots(db) == [A]
    assert find_id(db, A) == first
    assert find_id(db, Path("/c")) is None


def test_workspace_expires_only_if_nobody_declared_it(db: sqlite3.Connection) -> None:
    declare(db, A, 7, keep=True)
    old = declare(db, B, 7, keep=False)
    assert unused_since(db, 7) == []
    assert unused_since(db, 8) == [old]
    declare(db, B, 8, keep=False)
    assert unused_since(db, 8) == []


def test_the_files_of_a_workspace_and_their_blobs(db: sqlite3.Connection) -> None:
    first, second = declare(db, A, 7, keep=True), declare(db, B, 7, keep=True)
    db.execute("INSERT INTO blob(name, path, size, state) VALUES(x'00', 'p', 1, 1)")
    rows = [(first, "a.py", 1), (first, "b.bin", None), (second, "c.py", 1)]
    db.executemany("INSERT INTO file VALUES(?, ?, 1, 1, 1, 1, ?, NULL)", rows)
    assert files_of(db, first) == {"a.py": 1, "b.bin": None}
