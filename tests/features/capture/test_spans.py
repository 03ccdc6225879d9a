"""Where secrets and long base64 stand."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.redact import MARK, Redactor
from byok.features.capture.scrub import LONGEST_BASE64, find_spans
from tests.fakes.linear import check_linear

KEY = "canary/key+0123456789-ABC_def"


def redactor() -> Redactor:
    known = Redactor()
    known.add(KEY)
    return known


def hide(text: str, *, fragments: bool = False) -> str:
    shown, at = [], 0
    for span in find_spans(text, redactor().find_spans, fragments=fragments):
        assert at <= span.start < span.end
        shown += [text[at : span.start], span.shown]
        at = span.end
    return "".join(shown) + text[at:]


@given(st.integers(0, 400_000), st.sampled_from([KEY, "sk-" + "a1B2" * 8]))
def test_a_secret_is_found_wherever_it_stands(before: int, secret: str) -> None:
    text = "x " * (before // 2) + secret + " y" * 50_000
    assert hide(text) == text.replace(secret, MARK)


@given(st.lists(st.integers(1, len(KEY) - 1), max_size=6, unique=True))
def test_a_secret_in_fragments_of_one_field_is_found(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(KEY)]
    parts = [KEY[a:b] for a, b in pairwise(edges)]
    lines = [
        "data: " + json.dumps({"id": "c", "choices": [{"delta": {"content": part}}]})
        for part in ("Your key ", *parts, " is it.")
    ]
    shown = hide("\n\n".join(lines), fragments=True)
    values = [
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in shown.split("\n\n")
    ]
    assert "".join(values) == f"Your key {MARK * len(parts)} is it."


def test_long_base64_is_counted_and_short_base64_stays() -> None:
    long, short = "QUJD" * 100_000, "QUJD" * (LONGEST_BASE64 // 4 - 1)
    text = json.dumps({"image": long, "hash": short})
    expected = json.dumps({"image": "[base64 of 400000 characters]", "hash": short})
    assert hide(text) == expected


@pytest.mark.parametrize("size", range(8, len(KEY)))
def test_a_secret_that_the_end_cuts_is_found(size: int) -> None:
    assert hide(f"it is {KEY[:size]}") == f"it is {MARK}"


def test_a_text_without_secrets_stays() -> None:
    text = json.dumps({"text": "def f(key): return key"}) * 5000
    assert hide(text, fragments=True) == text


@pytest.mark.parametrize("unit", ["a" * 1000 + " ", "key=", "sk-", "eyJ.", "://"])
def test_the_search_takes_time_in_proportion(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    find = redactor().find_spans
    check_linear(lambda n: find_spans(text * n, find, fragments=False), 1)
