"""What is to have a vector: the order, and blobs that are gone or other ones now."""

import pytest

from byok.search.index.store.schema import TO_INDEX, TO_REMOVE
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store import listings
from byok.search.vectors.store.database import Space, VectorDatabase
from tests.fakes.vectors import SPACE, Rows, keys, probe


def look(connection: VectorDatabase, recipe: str = "1") -> int:
    with connection.writing() as db:
        listings.delete_stale(db)
        return listings.list_new(db, recipe, is_embedded)


def planned(connection: VectorDatabase, *asked: int, limit: int = 99) -> list[int]:
    with connection.reading() as db:
        return [blob.blob_id for blob in listings.find_unlisted(db, "1", asked, limit)]


def missing(connection: VectorDatabase, space_id: int = 1) -> list[int]:
    space = Space(space_id, SPACE, probe(), is_ready=False)
    with connection.reading() as db:
        return [blob.blob_id for blob in listings.find_incomplete(db, space, (), 99)]


def test_asked_blobs_come_first_then_the_newest_files(
    connection: VectorDatabase, rows: Rows
) -> None:
    old, new, upload, asked, also = rows.add(*(f"{n}.py" for n in range(5)))
    rows.run("INSERT INTO workspace(id, root) VALUES(1, '/x')")
    for blob_id, mtime in [(old, 10), (new, 99), (asked, 1), (also, 2)]:
        rows.run(
            "INSERT INTO file VALUES(1, ?, 1, ?, 0, 0, ?, NULL)",
            f"{blob_id}.py", mtime, blob_id,
        )  # fmt: skip
    look(connection)
    assert planned(connection, asked, also) == [asked, also, new, old, upload]
    assert planned(connection, asked, also, limit=3) == [asked, also, new]


def test_missing_is_a_difference_of_keys(
    connection: VectorDatabase, rows: Rows
) -> None:
    first, second, third = rows.add("a.py", "b.py", "c.py", chunks=2)
    look(connection)
    a, b, c = keys("a", "b", "c")
    with connection.writing() as db:
        chunks = {first: [(0, a), (1, b)], second: [(0, a)], third: [(0, c)]}
        assert listings.list_chunks(db, "1", chunks) == [first, second, third]
        assert listings.list_chunks(db, "1", chunks) == []
        assert listings.list_chunks(db, "1", {third: []}) == []
        assert listings.list_chunks(db, "1", {third: [(0, a)]}) == [third]
        assert listings.list_chunks(db, "1", {third: [(0, c)]}) == [third]
        assert list(listings.absent_keys(db, 1, [c, a, a])) == [c, a]
    assert planned(connection) == []
    assert sorted(missing(connection)) == [first, second, third]
    with connection.writing() as db:
        db.execute(
            "INSERT INTO vector SELECT id, 1, id, 1, 1.0, 0, x'' FROM key "
            "WHERE name = ?", (a,),
        )  # fmt: skip
        db.execute("INSERT INTO refused SELECT 1, id, 1 FROM key WHERE name = ?", (c,))
        assert list(listings.absent_keys(db, 1, [a, b, c])) == [b]
        assert listings.count(db, "1", 1) == (4, 1)
    assert missing(connection) == [first]
    assert sorted(missing(connection, space_id=2)) == [first, second, third]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM blob",
        f"UPDATE blob SET state = {TO_REMOVE}",
        "UPDATE blob SET name = randomblob(32)",
        f"UPDATE blob SET index_version = 2, state = {TO_INDEX}",
    ],
)
def test_a_blob_that_is_another_one_now_is_listed_no_more(
    connection: VectorDatabase, rows: Rows, change: str
) -> None:
    (blob_id,) = rows.add("a.py")
    look(connection)
    with connection.writing() as db:
        listings.list_chunks(db, "1", {blob_id: [(0, keys("a")[0])]})
    rows.run(change)
    with connection.writing() as db:
        assert listings.delete_stale(db) == {blob_id}
        assert db.execute("SELECT count(*) FROM chunk").fetchone() == (0,)
        assert listings.count(db, "1", 1) == (0, 0)


def test_blobs_without_chunks_are_looked_at_again(
    connection: VectorDatabase, rows: Rows
) -> None:
    code, doc = rows.add("a.py", "a.md")
    look(connection)
    with connection.writing() as db:
        listings.list_chunks(db, "1", {code: []})
        listings.delete_empty(db)
    assert look(connection) == 1
    assert planned(connection) == [code]
    assert doc != code
