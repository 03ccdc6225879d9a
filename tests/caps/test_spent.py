"""What one request spent, as far as it is known."""

from typing import Any

import pytest

from byok.caps.spent import Spent, spending_of
from tests.fakes.journal_entries import entry


@pytest.mark.parametrize(
    ("fields", "spent"),
    [
        ({}, Spent(1, 1230, 0.25)),
        ({"cost": None}, Spent(1, 1230, 0.0, 1)),
        ({"input_tokens": None, "output_tokens": None}, Spent(1, 0, 0.25)),
        ({"model": ""}, Spent(0, 1230, 0.25)),  # byok's own question
        ({"model": "", "cost": None}, Spent(0, 1230, 0.0)),
        ({"attempts": 0, "input_tokens": 0, "output_tokens": 0}, Spent(0, 0, 0.25)),
        ({"outcome": "failed"}, Spent(1, 1230, 0.25)),
    ],
)
def test_unknown_costs_are_counted_apart(fields: dict[str, Any], spent: Spent) -> None:
    assert spending_of(entry(**fields)) == spent


def test_sums_add_every_field() -> None:
    assert Spent(1, 2, 3.0, 4).plus(Spent(10, 20, 30.0, 40)) == Spent(11, 22, 33.0, 44)
