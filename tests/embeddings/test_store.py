"""The store of vectors: what is put is found, and survives."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.embeddings.recipe import is_embedded
from byok.embeddings.spaces import Space
from byok.embeddings.store import VectorStore
from tests.fakes.stores import view
from tests.fakes.vectors import SPACE, Rows, keys, probe, vector, vectors


@pytest.fixture
def rows(tmp_path: Path) -> Rows:
    return Rows(tmp_path / "data.db")


@pytest.fixture
def store(tmp_path: Path, rows: Rows) -> Iterator[VectorStore]:
    made = VectorStore(tmp_path / "vectors.db", rows.path)
    yield made
    made.close()


def fill(store: VectorStore, rows: Rows, *texts: str) -> tuple[Space, list[int]]:
    """Give one blob for each text a vector."""
    ids = rows.add(*(f"{text}.py" for text in texts))
    store.look(SPACE.recipe, is_embedded)
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
