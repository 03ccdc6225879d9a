"""Rows of numbers: by safe labels, and never more than the limit."""

import pytest

from byok.core.redact import Redactor
from byok.features.metrics.counts import OTHER, Count, Rows


def labels_of(rows: Rows[Count]) -> list[tuple[str, ...]]:
    return [labels for labels, _ in rows]


def test_equal_names_share_a_row() -> None:
    rows = Rows(Count)
    rows.find(("one", "m")).times += 1
    rows.find(("one", "m")).times += 1
    rows.find(("one", "n")).times += 1
    assert {labels: row.times for labels, row in rows} == {
        ("one", "m"): 2,
        ("one", "n"): 1,
    }


def test_names_beyond_the_limit_share_one_row() -> None:
    rows = Rows(Count, limit=5)
    for number in range(10_000):
        rows.find(("one", f"m{number}")).times += 1
    found = {labels: row.times for labels, row in rows}
    assert len(found) == 5
    assert found["one", "m3"] == 1
    assert found[OTHER, OTHER] == 9_996


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("a\nb", "a\\nb", id="line end"),
        pytest.param("a\r\x1b[31m", "a\\r\\x1b[31m", id="terminal controls"),
        pytest.param("\ud800", "\\ud800", id="half a character"),
        pytest.param("\u2028\u202e", "\\u2028\\u202e", id="order and lines"),
        pytest.param("m" * 10**6, "m" * 120, id="long"),
        pytest.param("sk-" + "x" * 40, "[redacted]", id="a key"),
    ],
)
def test_labels_are_short_and_show_everything_but_keys(name: str, shown: str) -> None:
    rows = Rows(Count, Redactor())
    rows.find((name,))
    assert labels_of(rows) == [(shown,)]


def test_names_that_look_the_same_when_cut_are_one_row() -> None:
    rows = Rows(Count, Redactor())
    for letter in "abc":
        rows.find(("sk-" + letter * 40,)).times += 1
        rows.find(("m" * 2000 + letter,)).times += 1
    assert {labels: row.times for labels, row in rows} == {
        ("[redacted]",): 3,
        ("m" * 120,): 3,
    }
