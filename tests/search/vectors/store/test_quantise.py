"""Vectors as 8-bit numbers keep their direction; what has none is told."""

import numpy as np
import pytest

from byok.search.vectors.store.quantise import (
    cosine,
    normalise,
    quantise,
    restore,
    take,
)
from tests.fakes.vectors import vectors


@pytest.mark.parametrize("length", [1.0, 1e-6, 1e6], ids=str)
def test_a_vector_keeps_its_direction_whatever_its_length(length: float) -> None:
    before = vectors([str(n) for n in range(50)], 384) * np.float32(length)
    rows = quantise(before)
    after = restore(rows.numbers, rows.scales)
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


def test_a_question_of_any_length_has_length_one() -> None:
    found = normalise(vectors(["a"]) * 7)
    assert found is not None
    assert found.shape == (16,)
    assert np.linalg.norm(found) == pytest.approx(1)


def test_rows_are_taken_in_an_order() -> None:
    rows = quantise(vectors(["a", "b", "c"]))
    some = take(rows, [2, 0])
    assert (some.numbers == rows.numbers[[2, 0]]).all()
    assert (some.scales == rows.scales[[2, 0]]).all()


def test_cosine_of_vectors_that_cannot_be_compared_is_zero() -> None:
    a, b = vectors(["a", "b"])
    assert cosine(a, a[:8]) == 0
    assert cosine(a, b * 0) == 0
    assert cosine(a, b * np.nan) == 0
    assert cosine(a, a * 3) == pytest.approx(1)
