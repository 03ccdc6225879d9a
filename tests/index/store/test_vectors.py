"""The contract of a vector index, shown by one in memory."""

from collections.abc import Callable

import pytest

from byok.index.store.vectors import VectorIndex
from tests.fakes.stores import ids_of, view
from tests.fakes.vector_index import MemoryVectors

ENGINES: list[Callable[[int], VectorIndex]] = [MemoryVectors]


@pytest.fixture(params=ENGINES)
def index(request: pytest.FixtureRequest) -> VectorIndex:
    made: VectorIndex = request.param(2)
    return made


def test_vector_index_finds_the_nearest_chunks_first(index: VectorIndex) -> None:
    index.add(1, [(1.0, 0.0), (0.0, 2.0)])
    index.add(2, [(3.0, 3.0)])
    assert index.search((1.0, 0.1), view(1, 2)) == []
    index.commit()
    hits = index.search((1.0, 0.1), view(1, 2))
    assert [(hit.blob_id, hit.ordinal) for hit in hits] == [(1, 0), (2, 0), (1, 1)]
    assert hits[0].score == pytest.approx(0.995, abs=0.001)
    assert ids_of(index.search((0.0, 1.0), view(2))) == [2]
    assert len(index.search((0.0, 1.0), view(1, 2), 1)) == 1


def test_vector_index_refuses_vectors_of_another_length(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match=str(index.length)):
        index.add(1, [(1.0, 0.0), (1.0, 0.0, 0.0)])
    index.commit()
    assert index.chunks == 0
