"""The store of vectors: what is put is found, and survives."""

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from byok.core.errors import DiskFull, IndexFailed
from byok.search.vectors.numeric import quantise
from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store import database, listings
from byok.search.vectors.store.database import Space, VectorDatabase
from byok.search.vectors.store.open_space import (
    StoredVectors,
    ids_of_keys,
    insert_vectors,
    vectors_of,
)
from byok.search.vectors.store.store import VectorStore, shrink_file, tidy
from tests.fakes.disk import fill as fill_disk
from tests.fakes.disk import mounted
from tests.fakes.stores import view
from tests.fakes.vectors import SPACE, Rows, keys, probe, vector, vectors


@pytest.fixture
def store(tmp_path: Path, rows: Rows) -> Iterator[VectorStore]:
    made = VectorStore(tmp_path / "vectors.db", rows.path)
    yield made
    made.close()


def fill(store: VectorStore, rows: Rows, *texts: str) -> tuple[Space, list[int]]:
    """Give one blob for each text a vector."""
    ids = rows.add(*(f"{text}.py" for text in texts))
    store.refresh_listing(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    blobs = {i: [(0, key)] for i, key in zip(ids, keys(*texts), strict=True)}
    absent = store.list_chunks(space, blobs)
    assert absent == set(keys(*texts))
    assert store.put(space, keys(*texts), vectors(texts)) == []
    return space, ids


def test_the_nearest_chunk_is_found_again_after_a_restart(
    tmp_path: Path, rows: Rows
) -> None:
    store = VectorStore(tmp_path / "vectors.db", rows.path)
    space, ids = fill(store, rows, "alpha", "beta", "gamma")
    for _ in range(2):
        found = store.near(space, vector("beta"), view(*ids), ids[:1])
        assert found.nearest[0][:2] == (ids[1], 0)
        assert found.nearest[0].score == pytest.approx(1, abs=0.005)
        assert len(found.nearest) == 3
        assert found.best.keys() == {ids[0]}
        expected = float(vector("alpha") @ vector("beta"))
        assert found.best[ids[0]].score == pytest.approx(expected, abs=0.01)
        assert store.progress(space) == (3, 3, 0)
        store.close()
        store = VectorStore(tmp_path / "vectors.db", rows.path)
        assert store.space_for(space) == space
    store.close()


def test_chunks_that_share_a_text_share_a_vector(
    store: VectorStore, rows: Rows
) -> None:
    space, (first,) = fill(store, rows, "alpha")
    (second,) = rows.add("copy.py", chunks=2)
    store.refresh_listing(SPACE.recipe, is_embedded)
    alpha, beta = keys("alpha", "beta")
    assert store.list_chunks(space, {second: [(0, beta), (1, alpha)]}) == {beta}
    found = store.near(space, vector("alpha"), view(first, second))
    assert [hit[:2] for hit in found.nearest] == [(first, 0), (second, 1)]
    assert store.progress(space) == (3, 2, 0)


def test_a_vector_that_is_no_direction_counts_as_refused(
    store: VectorStore, rows: Rows
) -> None:
    ids = rows.add("a.py", "b.py", "c.py")
    store.refresh_listing(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    texts = keys("a", "b", "c")
    store.list_chunks(space, {i: [(0, k)] for i, k in zip(ids, texts, strict=True)})
    some = vectors(["a", "b", "c"])
    some[0], some[2, 5] = 0, np.nan
    assert store.put(space, texts, some) == [texts[0], texts[2]]
    assert store.progress(space) == (3, 1, 2)
    assert store.read(listings.find_incomplete, space, (), 99) == []


@pytest.mark.case("B128")
def test_ids_of_a_replaced_index_find_nothing(tmp_path: Path, rows: Rows) -> None:
    store = VectorStore(tmp_path / "vectors.db", rows.path)
    space, ids = fill(store, rows, "alpha", "beta")
    store.close()
    rows.path.unlink()
    others = Rows(rows.path)
    assert others.add("other.py", "another.py") == ids
    store = VectorStore(tmp_path / "vectors.db", rows.path)
    assert store.near(space, vector("alpha"), view(*ids), ids) == ([], {})
    store.refresh_listing(SPACE.recipe, is_embedded)
    assert store.near(space, vector("alpha"), view(*ids), ids) == ([], {})
    assert store.list_chunks(space, {ids[0]: [(0, keys("beta")[0])]}) == set()
    found = store.near(space, vector("beta"), view(*ids))
    assert [hit.blob_id for hit in found.nearest] == [ids[0]]
    store.close()


def test_the_newest_ready_space_answers(store: VectorStore, rows: Rows) -> None:
    old, _ = fill(store, rows, "alpha")
    assert store.settle(old, store.progress(old))
    new = store.enter(replace(SPACE, recipe="2"), probe())
    store.refresh_listing("2", is_embedded)
    answering = store.space_for(new)
    assert answering is not None
    assert answering.id == old.id
    assert not store.settle(new, store.progress(new))
    other = store.enter(replace(SPACE, model="other"), probe())
    assert store.space_for(other) == other
    assert store.settle(answering, store.progress(answering))  # back to the old one
    assert [space.id for space in store.spaces()] == [old.id]


def test_a_cleared_store_finds_nothing_and_its_files_go(
    tmp_path: Path, store: VectorStore, rows: Rows
) -> None:
    space, ids = fill(store, rows, "alpha")
    assert list((tmp_path / "vectors").iterdir())
    store.clear()
    assert store.spaces() == []
    assert store.space_for(space) is None
    assert list((tmp_path / "vectors").iterdir()) == []
    while store.tidy(1):
        pass
    again = store.enter(SPACE, probe())
    assert again.id != space.id
    assert store.progress(again).embedded == 0
    assert store.near(again, vector("alpha"), view(*ids)) == ([], {})


@pytest.mark.case("F51")
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "3m") as disk:
        rows = Rows(disk / "data.db")
        store = VectorStore(disk / "vectors.db", rows.path)
        space, ids = fill(store, rows, "alpha", "beta")
        (more,) = rows.add("more.py", chunks=2000)
        store.refresh_listing(SPACE.recipe, is_embedded)
        fill_disk(disk / "filler")
        texts = [str(n) for n in range(2000)]
        with pytest.raises(DiskFull):
            store.list_chunks(space, {more: list(enumerate(keys(*texts)))})
        found = store.near(space, vector("beta"), view(*ids))
        assert found.nearest[0].blob_id == ids[1]
        (disk / "filler").unlink()
        store.list_chunks(space, {more: list(enumerate(keys(*texts)))})
        fill_disk(disk / "filler")
        with pytest.raises(DiskFull):
            store.put(space, keys(*texts), vectors(texts))
        assert store.progress(space).embedded == 2
        (disk / "filler").unlink()
        assert store.put(space, keys(*texts), vectors(texts)) == []
        assert store.progress(space).embedded == 2002
        found = store.near(space, vector("1234"), view(more, *ids))
        assert found.nearest[0][:2] == (more, 1234)
        store.close()


def test_searching_while_filling_sees_whole_batches(
    store: VectorStore, rows: Rows
) -> None:
    texts = [str(n) for n in range(1500)]
    (blob_id,) = rows.add("a.py", chunks=len(texts))
    store.refresh_listing(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    store.list_chunks(space, {blob_id: list(enumerate(keys(*texts)))})
    counts: list[int] = []
    ended = threading.Event()

    def search() -> None:
        while not ended.is_set():
            found = store.near(space, vector("7"), view(blob_id), [], 10**6)
            counts.append(len(found.nearest))
            best = found.nearest[0] if found.nearest else None
            assert best is None or (best.ordinal == 7 and best.score > 0.98)

    with ThreadPoolExecutor(2) as pool:
        searches = [pool.submit(search) for _ in range(2)]
        for first in range(0, len(texts), 100):
            some = texts[first : first + 100]
            store.put(space, keys(*some), vectors(some))
        ended.set()
        for one in searches:
            one.result()
    assert all(count % 100 == 0 for count in counts)
    assert len(store.near(space, vector("7"), view(blob_id), [], 10**6).nearest) == 1500


def test_two_threads_that_store_at_once_lose_nothing(
    store: VectorStore, rows: Rows
) -> None:
    texts = [f"text{number}" for number in range(200)]
    ids = rows.add(*(f"{text}.py" for text in texts))
    store.refresh_listing(SPACE.recipe, is_embedded)
    space = store.enter(SPACE, probe())
    blobs = {i: [(0, key)] for i, key in zip(ids, keys(*texts), strict=True)}
    store.list_chunks(space, blobs)

    def put(some: list[str]) -> None:
        for text in some:
            store.put(space, keys(text), vectors([text]))

    with ThreadPoolExecutor(2) as pool:  # such as filling, and `byok embed pull`
        for done in [pool.submit(put, texts[n::2]) for n in range(2)]:
            done.result()
    for number, text in zip(ids, texts, strict=True):
        nearest = store.near(space, vector(text), view(*ids), limit=1).nearest
        assert nearest[0][:2] == (number, 0)


def test_vectors_of_a_model_that_came_back_are_not_taken_for_anothers(
    store: VectorStore, rows: Rows
) -> None:
    """Two versions of a model take turns behind a name."""
    other = store.enter(SPACE, probe("other"))
    space, _ = fill(store, rows, "alpha")  # good
    store.enter(SPACE, probe())
    (more,) = rows.add("beta.py")
    store.refresh_listing(SPACE.recipe, is_embedded)
    [beta] = keys("beta")
    store.list_chunks(space, {more: [(0, beta)]})
    store.put(space, [beta], vectors(["beta"], model="other"))
    assert store.enter(SPACE, probe("other")) == other
    assert store.enter(SPACE, probe()) == space
    assert store.read(vectors_of, space, keys("alpha", "beta")).keys() == {
        *keys("alpha")
    }


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE vector SET id = id + 2147483648",  # a place: 1.5 TB of rows
        "UPDATE space SET probe = x'00'",
    ],
)
def test_rows_that_byok_never_wrote_are_an_error_of_byok(
    tmp_path: Path, rows: Rows, harm: str
) -> None:
    store = VectorStore(tmp_path / "vectors.db", rows.path)
    space, ids = fill(store, rows, "alpha", "beta")
    store.close()
    with closing(sqlite3.connect(tmp_path / "vectors.db")) as db, db:
        db.execute(harm)
    with pytest.raises(IndexFailed, match="damaged"):
        VectorStore(tmp_path / "vectors.db", rows.path).near(
            space, vector("alpha"), view(*ids)
        )


# Spaces: a model is known by its name and by its vector of the probe text


def test_a_space_is_found_by_name_and_probe(store: VectorStore) -> None:
    made = store.enter(SPACE, probe())
    noisy = probe() + np.float32(0.002) * probe("other")
    assert store.enter(SPACE, noisy) == made
    assert np.allclose(store.spaces()[0].probe, probe())
    for name, row in (
        (SPACE, probe("other")),
        (SPACE, probe() * np.nan),
        (replace(SPACE, recipe="2"), probe()),
    ):
        assert store.enter(name, row) != made
    assert store.enter(SPACE, probe()) == made


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ({}, True),
        ({"model_of_probe": "other"}, False),  # it was replaced
        ({"model_of_probe": "other", "document_prefix": "code: "}, True),
        ({"recipe": "2"}, True),
        ({"document_prefix": "code: "}, True),
        ({"query_prefix": "question: "}, False),
        ({"dimensions": 8}, False),
        ({"model": "other"}, False),
    ],
    ids=str,
)
def test_questions_of_another_recipe_can_be_compared(
    change: dict[str, Any], answers: bool
) -> None:
    space = database.Space(1, SPACE, probe(), is_ready=True)
    model = change.pop("model_of_probe", "model")
    other = database.Space(2, replace(SPACE, **change), probe(model), is_ready=False)
    assert other.answers(space) is answers


# What is no longer needed goes, step by step and not too early


def put_rows(connection: VectorDatabase, count: int) -> Space:
    texts = [str(number) for number in range(count)]
    with connection.writing() as db:
        space = database.make_space(db, SPACE, probe())
        db.executemany(
            "INSERT OR IGNORE INTO key(name) VALUES(?)", [(k,) for k in keys(*texts)]
        )
        ids = list(ids_of_keys(db, keys(*texts)).values())
        rows = quantise(vectors(texts))
        insert_vectors(db, space.id, StoredVectors(range(count), ids, rows))
    return space


def count(connection: VectorDatabase, table: str) -> int:
    with connection.reading() as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def tidy_all(connection: VectorDatabase, day: int) -> int:
    for steps in range(99):
        with connection.writing() as db:
            if not tidy(db, day):
                return steps
    raise AssertionError("it never ends")


def test_a_space_that_is_left_goes_in_several_steps(connection: VectorDatabase) -> None:
    old, new = put_rows(connection, 4500), put_rows(connection, 3)
    with connection.writing() as db:
        database.schedule_removal(db, [old])
    assert tidy_all(connection, 1) >= 3
    assert count(connection, "vector") == 3
    assert count(connection, "space") == 1
    with connection.reading() as db:
        assert database.all_spaces(db) == [new]
        assert not shrink_file(db)
        assert db.execute("PRAGMA main.freelist_count").fetchone() == (0,)


def test_a_vector_outlives_its_last_chunk_by_two_weeks(
    connection: VectorDatabase,
) -> None:
    put_rows(connection, 3)
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
