"""What a model says again: before the cursor, and behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.stage import drain
from byok.protocols.augment.completion import Cursor, Unrepeated, without_suffix
from tests.fakes.slices import CUTS, cut, singles

DEF = "import os\n\ndef fare(kind):\n    if kind:\n        ret"
LETTERS = st.text("ab( )\n", max_size=12)


def new(before: str, *said: str) -> str:
    return "".join(drain(Unrepeated(Cursor(before, "")), said))


@pytest.mark.parametrize(
    ("before", "said", "left"),
    [
        pytest.param(DEF, "urn 1", "urn 1", id="nothing"),
        pytest.param(DEF, "        return 1", "urn 1", id="its line"),
        pytest.param(DEF, "return 1", "urn 1", id="its line without indentation"),
        pytest.param("x = tot", "total", "al", id="the word that was begun"),
        pytest.param("x = tot", "tot", "tot", id="a word that is not longer"),
        pytest.param("x = t", "total", "total", id="a letter is no word"),
        pytest.param(
            DEF, "def fare(kind):\n    if kind:\n        return 1", "urn 1", id="lines"
        ),
        pytest.param("a\n    ", "    b", "b", id="the indentation"),
        pytest.param("a\n    ", "b", "b", id="no indentation"),
        pytest.param("f(", "(1, 2)", "(1, 2)", id="a bracket is no repetition"),
        pytest.param("0,\n0,\n", "0,\n0,\n", "0,\n0,\n", id="rows of a table"),
        pytest.param("", "x", "x", id="an empty file"),
        pytest.param("foo.bar", "foo.b", "foo.b", id="less than was there"),
    ],
)
def test_repeated_prefix_is_removed(before: str, said: str, left: str) -> None:
    assert new(before, said) == left
    assert new(before, *singles(said)) == left


@given(LETTERS, LETTERS, CUTS)
def test_repeated_text_any_slicing_gives_the_same(
    before: str, said: str, places: list[int]
) -> None:
    whole = new(before, said)
    assert new(before, *cut(said, places)) == whole
    assert said.endswith(whole)
    assert new(before, before.rpartition("\n")[2] + "zz").endswith("zz")


@pytest.mark.parametrize(
    ("text", "suffix", "left"),
    [
        ("a)", ")", "a"),
        ("g(x)", ")", "g(x)"),
        ("g(x))", ")", "g(x)"),
        ("g(a))", "))", "g(a)"),
        ('b"', '"', "b"),
        ('"b"', '"]', '"b"'),
        ("x\n", "\ny", "x"),
        ("x\n    return x\n", "\n    return x\n", "x"),
        ("{\n  a\n}", "\n}\n", "{\n  a\n}"),
        ("x", "y", "x"),
        ("x", "", "x"),
        ("", "x", ""),
    ],
)
def test_repeated_suffix_is_removed(text: str, suffix: str, left: str) -> None:
    assert without_suffix(text, suffix) == left


@given(st.text("ab\n", max_size=14), st.text("ab\n", max_size=14))
def test_repeated_suffix_without_brackets_is_the_longest(
    text: str, suffix: str
) -> None:
    taken = len(text) - len(without_suffix(text, suffix))
    ends = (n for n in range(len(text) + 1) if suffix[:n] == text[len(text) - n :])
    assert taken == max(ends)
