"""Blobs by name: what is kept, what counts as known, aliases and damage."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.search.index.store import blobs
from byok.search.index.store.blobs import content_of, find_known, store
from byok.search.index.store.schema import INDEX, INDEXED, TO_INDEX, TO_REMOVE
from byok.search.index.types import SkipReason
from byok.storage.database import Database
from tests.fakes.stores import upload

A = upload("src/a.py", "one")
B = upload("src/b.py", "two")
COLLIDING = upload("src/a", ".py code"), upload("src/a.py", " code")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    database = Database(tmp_path / "data.db", INDEX)
    with database.writing() as db:
        yield db
    database.close()


def state(db: sqlite3.Connection, blob_id: int, value: int) -> None:
    db.execute("UPDATE blob SET state = ? WHERE id = ?", (value, blob_id))


@pytest.mark.case("B65")
def test_upload_of_two_files_with_one_blob_name_keeps_the_first(
    db: sqlite3.Connection,
) -> None:
    first, second = COLLIDING
    assert first.name == second.name
    names, fresh = store(db, [first], {}, 7)
    assert store(db, [second], {}, 7) == (names, [])
    assert content_of(db, fresh[0]) == b".py code"
    assert store(db, [second, first], {}, 7) == (names * 2, [])


@pytest.mark.case("B64")
def test_a_wrong_name_becomes_another_name_of_the_same_blob(
    db: sqlite3.Connection,
) -> None:
    wrong = A._replace(name=b"w" * 32)
    names, fresh = store(db, [wrong], {}, 7)
    assert names == [A.name]
    found = find_known(db, [A.name, wrong.name])
    assert found[A.name] == found[wrong.name]
    assert found[A.name].id == fresh[0]
    assert content_of(db, fresh[0]) == b"one"


@pytest.mark.case("B64")
def test_upload_under_a_wrong_blob_name_does_not_keep_the_right_file_out(
    db: sqlite3.Connection,
) -> None:
    """An editor named a file before its last change, and comes back to it later."""
    _, (other,) = store(db, [B._replace(name=A.name)], {}, 7)
    assert find_known(db, [A.name])[A.name].id == other
    _, (blob_id,) = store(db, [A], {}, 7)
    assert content_of(db, blob_id) == b"one"
    assert find_known(db, [A.name])[A.name].id == blob_id
    store(db, [B._replace(name=A.name)], {}, 7)
    assert find_known(db, [A.name])[A.name].id == blob_id


def test_blob_that_was_refused_is_known_with_its_reason_only(
    db: sqlite3.Connection,
) -> None:
    names, fresh = store(db, [A, B], {0: SkipReason.SECRET}, 7)
    found = find_known(db, names)
    entry = found[A.name]
    assert (entry.is_held, entry.held, entry.reason) == (True, False, "secret")
    assert entry.state == INDEXED
    assert content_of(db, entry.id) is None
    assert fresh == [found[B.name].id]
    assert store(db, [A], {}, 7)[1] == []


def test_upload_is_kept_while_its_removal_is_pending(db: sqlite3.Connection) -> None:
    for reason in (None, "binary"):
        _, (blob_id,) = store(db, [A], {}, 7)
        db.execute("DELETE FROM content")
        db.execute("UPDATE blob SET reason = ?, spans = x'00'", (reason,))
        state(db, blob_id, TO_REMOVE)
        assert not blobs.store_content(db, blob_id, b"one")
        assert store(db, [A], {}, 8)[1] == [blob_id]
        assert find_known(db, [A.name])[A.name].state == TO_INDEX
        assert db.execute("SELECT reason, spans FROM blob").fetchone() == (None, b"")
        db.execute("DELETE FROM blob")


def test_blob_of_a_workspace_file_is_held_without_being_indexed_again(
    db: sqlite3.Connection,
) -> None:
    db.execute(
        "INSERT INTO blob(name, path, size, state, spans) VALUES(?, ?, 3, ?, x'01')",
        (A.name, A.path, INDEXED),
    )
    assert not find_known(db, [A.name])[A.name].is_held
    assert store(db, [A], {}, 7) == ([A.name], [])
    assert find_known(db, [A.name])[A.name].is_held
    assert db.execute("SELECT state, spans FROM blob").fetchone() == (INDEXED, b"\1")


@pytest.mark.case("F37")
@pytest.mark.parametrize("damage", [b"", b"\x78\x01garbage", "flip", "cut", "other"])
def test_blob_with_damaged_content_is_not_returned(
    db: sqlite3.Connection, damage: bytes | str
) -> None:
    text = upload("a.txt", "some words " * 50)
    _, (blob_id, other) = store(db, [text, B], {}, 7)
    (packed,) = db.execute("SELECT packed FROM content").fetchone()
    if damage == "flip":
        damage = packed[:9] + bytes([packed[9] ^ 1]) + packed[10:]
    elif damage == "cut":
        damage = packed[:-5]
    elif damage == "other":
        (damage,) = db.execute(
            "SELECT packed FROM content WHERE blob_id = ?", (other,)
        ).fetchone()
    db.execute("UPDATE content SET packed = ? WHERE blob_id = ?", (damage, blob_id))
    assert content_of(db, blob_id) is None
    assert content_of(db, other) == b"two"
    assert content_of(db, 99) is None
