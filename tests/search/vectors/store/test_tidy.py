"""What is no longer needed goes, step by step and not too early."""

from byok.search.vectors.numeric import quantise
from byok.search.vectors.store import database, store
from byok.search.vectors.store.database import Space, VectorDatabase
from byok.search.vectors.store.open_space import ids_of_keys, insert_vectors
from tests.fakes.vectors import SPACE, keys, probe, vectors


def fill(connection: VectorDatabase, count: int) -> Space:
    texts = [str(number) for number in range(count)]
    with connection.writing() as db:
        space = database.make_space(db, SPACE, probe())
        db.executemany(
            "INSERT OR IGNORE INTO key(name) VALUES(?)", [(k,) for k in keys(*texts)]
        )
        ids = list(ids_of_keys(db, keys(*texts)).values())
        rows = quantise(vectors(texts))
        insert_vectors(db, space.id, range(count), ids, rows)
    return space


def count(connection: VectorDatabase, table: str) -> int:
    with connection.reading() as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def tidy_all(connection: VectorDatabase, day: int) -> int:
    for steps in range(99):
        with connection.writing() as db:
            if not store.tidy(db, day):
                return steps
    raise AssertionError("it never ends")


def test_a_space_that_is_left_goes_in_several_steps(connection: VectorDatabase) -> None:
    old, new = fill(connection, 4500), fill(connection, 3)
    with connection.writing() as db:
        database.leave(db, [old])
    assert tidy_all(connection, 1) >= 3
    assert count(connection, "vector") == 3
    assert count(connection, "space") == 1
    with connection.reading() as db:
        assert database.all_spaces(db) == [new]
        assert not store.give_back(db)
        assert db.execute("PRAGMA main.freelist_count").fetchone() == (0,)


def test_a_vector_outlives_its_last_chunk_by_two_weeks(
    connection: VectorDatabase,
) -> None:
    fill(connection, 3)
    with connection.writing() as db:
        db.execute("INSERT INTO chunk VALUES('1', 1, 0, 1), ('1', 1, 1, 2)")
    tidy_all(connection, 100)
    tidy_all(connection, 114)
    assert count(connection, "vector") == 3
    tidy_all(connection, 115)
    assert count(connection, "vector") == 2
    assert count(connection, "key") == 2
    with connection.writing() as db:
        db.execute("DELETE FROM chunk")
    tidy_all(connection, 200)
    with connection.writing() as db:
        db.execute("INSERT INTO chunk VALUES('1', 2, 0, 1)")  # it came back
    tidy_all(connection, 210)
    tidy_all(connection, 300)
    assert count(connection, "vector") == 1


def test_a_refused_text_is_tried_again_after_a_month(
    connection: VectorDatabase,
) -> None:
    with connection.writing() as db:
        db.execute("INSERT INTO refused VALUES(1, 1, 100)")
    tidy_all(connection, 130)
    assert count(connection, "refused") == 1
    tidy_all(connection, 131)
    assert count(connection, "refused") == 0
