import math
from typing import Any

import numpy as np
import pytest

from byok.search.vectors.team.collection import (
    check_score,
    check_vector,
    cosine,
    to_numbers,
)

UNIT = [0.6, 0.8, 0.0]


def test_a_good_vector_has_length_one() -> None:
    vector = check_vector([0.58, 0.8, 0.01], 3)
    assert vector is not None
    assert vector.dtype == np.float32
    assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    "received",
    [
        None,
        "0.6,0.8,0",
        {"indices": [0], "values": [1.0]},
        [],
        [0.6, 0.8],
        [0.6, 0.8, 0.0, 0.0],
        [UNIT, UNIT, UNIT],
        ["0.6", "0.8", "0"],
        [0.6, 0.8, None],
        [0.0, 0.0, 0.0],
        [6e30, 8e30, 0.0],
        [1e308, 1e308, 1e308],
        [10**400, 0, 0],
        [math.nan, 0.6, 0.8],
        [math.inf, 0.0, 0.0],
        [-math.inf, math.inf, 0.0],
        [1e-30, 0.0, 0.0],
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_poisoned_vector_is_left_out(received: Any) -> None:
    assert check_vector(received, 3) is None


def test_scores_stay_within_those_of_cosines() -> None:
    scores = (0.5, 1, 7.0, -1e9, math.inf, 10**400)
    assert [check_score(score) for score in scores] == [0.5, 1, 1, -1, 1, 1]
    assert [check_score(score) for score in (math.nan, None, "1", [1])] == [None] * 4


def test_cosines_of_rows_and_flat_vectors() -> None:
    row = np.array([UNIT], dtype=np.float32)
    assert cosine(row, row[0]) == pytest.approx(1)
    assert cosine(row, -row) == pytest.approx(-1)


def test_few_digits_are_sent() -> None:
    assert to_numbers(np.array([[0.123456789, -1]], dtype=np.float32)) == [
        [0.123457, -1.0]
    ]
