"""Vectors as rows: they come back whole, or are made again."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from byok.search.vectors.store import vector_rows
from byok.search.vectors.store.database import VectorDatabase
from byok.search.vectors.store.quantise import quantise, restore
from byok.search.vectors.store.rows_file import BLOCK
from byok.search.vectors.store.spaces import make_space
from tests.fakes.vectors import SPACE, Rows, keys, probe, vectors


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[VectorDatabase]:
    made = VectorDatabase(tmp_path / "vectors.db", Rows(tmp_path / "data.db").path)
    with made.writing() as db:
        make_space(db, SPACE, probe())
    yield made
    made.close()


PLACES = [0, 5, BLOCK + 1]


def insert(connection: VectorDatabase) -> None:
    with connection.writing() as db:
        db.executemany(
            "INSERT INTO key(name) VALUES(?)", [(key,) for key in keys("a", "b", "c")]
        )
        rows = quantise(vectors(["a", "b", "c"]))
        vector_rows.insert(db, 1, PLACES, [1, 2, 3], rows)


def test_vectors_come_back_by_key_by_block_and_by_chunk(
    connection: VectorDatabase,
) -> None:
    insert(connection)
    rows = quantise(vectors(["a", "b", "c"]))
    with connection.writing() as db:
        assert vector_rows.places_of(db, 1).tolist() == PLACES
        assert vector_rows.places_of(db, 2).tolist() == []
        assert vector_rows.ids_of_keys(db, keys("b", "x")) == {keys("b")[0]: 2}
        found = vector_rows.vectors_of(db, 1, 16, keys("c", "x", "a"))
        assert found.keys() == set(keys("a", "c"))
        expected = restore(rows.numbers, rows.scales)
        assert np.allclose(found[keys("c")[0]], expected[2])
        numbers, scales = vector_rows.read_block(db, 1, 0, 16)
        assert (numbers[[0, 5]] == rows.numbers[:2]).all()
        assert scales[[0, 5]] == pytest.approx(rows.scales[:2])
        assert np.count_nonzero(scales) == 2
        db.execute(
            "INSERT INTO chunk VALUES('1', 7, 0, 1), ('1', 7, 1, 3), ('2', 8, 0, 2)"
        )
        every = vector_rows.columns_of(db, 1, "1")
        assert every.blob.tolist() == [7, 7]
        assert every.place.tolist() == [0, BLOCK + 1]
        some = vector_rows.columns_of_keys(db, 1, "1", [3])
        assert some.ordinal.tolist() == [1]
        assert len(vector_rows.columns_of_blobs(db, 1, "1", [7, 8]).blob) == 2


@pytest.mark.parametrize(
    "harm",
    ["crc = crc + 1", "numbers = x'00'", "scale = scale * 2", "numbers = 'text'"],
)
def test_a_damaged_row_is_deleted_and_so_made_again(
    connection: VectorDatabase, harm: str
) -> None:
    insert(connection)
    with connection.writing() as db:
        db.execute(f"UPDATE vector SET {harm} WHERE key_id = 2")
        assert vector_rows.vectors_of(db, 1, 16, keys("a", "b")).keys() == set(
            keys("a")
        )
        numbers, scales = vector_rows.read_block(db, 1, 0, 16)
        assert not numbers[5].any()
        assert scales[5] == 0
        assert vector_rows.places_of(db, 1).tolist() == [0, BLOCK + 1]


def test_a_block_that_changes_has_no_checksum(connection: VectorDatabase) -> None:
    with connection.writing() as db:
        db.execute("INSERT INTO block VALUES(1, 0, 1), (1, 1, 1), (1, 2, 1)")
    insert(connection)
    with connection.reading() as db:
        assert db.execute("SELECT number FROM block").fetchall() == [(2,)]
