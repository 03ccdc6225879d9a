"""The scan finds what a plain comparison finds, for every view, while it grows."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.vectors.numeric import Quantised, cosine, normalise, quantise
from byok.search.vectors.store.matrix import BLOCK, Columns, Matrix, RowsFile
from tests.fakes.stores import view
from tests.fakes.vectors import vectors

COUNT = 2 * BLOCK + 700


def restore(rows: Quantised) -> NDArray[np.float32]:
    """Return vectors of length 1 from what `quantise` made."""
    return np.multiply(rows.numbers, rows.scales[:, None], dtype=np.float32)


class Reference:
    """Rows in a file, chunks that share some of them, and a plain comparison."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        made = quantise(rng.standard_normal((COUNT, 24)).astype(np.float32))
        self.rows = restore(made)
        self.file = RowsFile(folder / "a.rows", 1, 24)
        self.file.reserve(COUNT)
        self.file.write(np.arange(COUNT), made.numbers, made.scales)
        extra = rng.integers(0, COUNT, 300)  # chunks with the text of another
        self.place = np.concatenate([np.arange(COUNT), extra]).astype(np.int32)
        self.blob = (np.arange(len(self.place)) // 5 + 1).astype(np.int64)
        self.ordinal = (np.arange(len(self.place)) % 5).astype(np.int32)
        question = rng.standard_normal(24).astype(np.float32)
        self.question = question / np.linalg.norm(question)

    def columns(self, first: int = 0, last: int | None = None) -> Columns:
        some = slice(first, last)
        return Columns(self.blob[some], self.ordinal[some], self.place[some])

    def near(self, ids: frozenset[int], limit: int) -> list[ChunkScore]:
        scores = self.rows[self.place] @ self.question
        every = zip(self.blob, self.ordinal, scores, strict=True)
        hits = [ChunkScore(int(b), int(o), float(s)) for b, o, s in every if b in ids]
        return sorted(hits, key=lambda hit: (-hit.score, hit))[:limit]


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[Reference]:
    made = Reference(tmp_path)
    yield made
    made.file.close()


def check(matrix: Matrix, reference: Reference, seen: View, limit: int = 100) -> None:
    asked = sorted(seen.ids)[:40]
    found = matrix.near(reference.question, seen, [*asked, 10**9], limit)
    wanted = reference.near(seen.ids, limit)
    assert [hit[:2] for hit in found.nearest] == [hit[:2] for hit in wanted]
    scores = [hit.score for hit in found.nearest]
    assert scores == pytest.approx([hit.score for hit in wanted], abs=1e-5)
    assert found.best.keys() == set(asked)
    for blob_id, hit in found.best.items():
        (best,) = reference.near(frozenset([blob_id]), 1)
        assert hit[:2] == best[:2]


@pytest.mark.parametrize("share", [1, 2, 3, 40, 500])
def test_matrix_finds_what_a_plain_comparison_finds(
    reference: Reference, share: int
) -> None:
    matrix = Matrix()
    matrix.load(reference.columns(), reference.file.blocks)
    ids = frozenset(reference.blob.tolist()[:: 5 * share])
    for _ in range(2):  # the second time the view is known
        check(matrix, reference, View("key", ids, 0))
    check(matrix, reference, View("other", frozenset(range(1, 9)), 0), limit=3)


def test_matrix_grows_and_a_known_view_grows_with_it(reference: Reference) -> None:
    matrix = Matrix()
    everything = View("all", frozenset(reference.blob.tolist()), 0)
    step = 335
    for first in range(0, len(reference.blob), step):
        matrix.add(reference.columns(first, first + step), reference.file.blocks)
        matrix.near(reference.question, everything, [], 10)
    assert matrix.chunks == len(reference.blob)
    check(matrix, reference, everything)


def test_matrix_forgets_blobs_and_takes_them_again(reference: Reference) -> None:
    matrix = Matrix()
    matrix.load(reference.columns(), reference.file.blocks)
    some = view(1, 2, 3, key="some")
    assert len(matrix.near(reference.question, some, [], 100).nearest) == 15
    matrix.forget([2, 10**9])
    assert matrix.gone == 5
    found = matrix.near(reference.question, some, [2], 100)
    assert {hit.blob_id for hit in found.nearest} == {1, 3}
    assert found.best == {}
    matrix.add(reference.columns(5, 10), reference.file.blocks)
    check(matrix, reference, some)


# Vectors as 8-bit numbers keep their direction; what has none is told


@pytest.mark.parametrize("length", [1.0, 1e-6, 1e6], ids=str)
def test_a_vector_keeps_its_direction_whatever_its_length(length: float) -> None:
    before = vectors([str(n) for n in range(50)], 384) * np.float32(length)
    rows = quantise(before)
    after = restore(rows)
    assert rows.usable.all()
    assert np.linalg.norm(after, axis=1) == pytest.approx(1, abs=1e-5)
    for one, other in zip(before, after, strict=True):
        assert cosine(one, other) > 0.999


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_vectors_that_are_no_direction_are_told(bad: float) -> None:
    rows = vectors(["a", "b", "c"])
    rows[0] = 0
    rows[1, 3] = bad
    made = quantise(rows)
    assert made.usable.tolist() == [False, False, True]
    assert not made.numbers[:2].any()
    assert np.isfinite(made.scales).all()
    assert normalise(rows[0]) is None
    assert normalise(rows[1]) is None
