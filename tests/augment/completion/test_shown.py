"""Typing along a prediction needs no other."""

from hypothesis import given
from hypothesis import strategies as st

from byok.augment.completion.cursor import Cursor
from byok.augment.completion.shown import Shown

BEFORE, AFTER, TEXT = "def f():\n    ", "\n", "return 1\n    # done"
LONG = "".join(f"line {n}\n" for n in range(200))


def shown(before: str = BEFORE, text: str = TEXT) -> Shown:
    kept = Shown()
    kept.keep("k", Cursor(before, AFTER), text)
    return kept


@given(st.integers(0, len(TEXT) - 1))
def test_what_is_left_is_known(typed: int) -> None:
    cursor = Cursor(BEFORE + TEXT[:typed], AFTER)
    assert shown().rest("k", cursor) == TEXT[typed:]


def test_at_its_end_another_is_needed() -> None:
    assert shown().rest("k", Cursor(BEFORE + TEXT, AFTER)) == ""
    assert shown(text="a  ").rest("k", Cursor(BEFORE + "a", AFTER)) == ""


def test_who_types_something_else_needs_another() -> None:
    for before, after in (
        (BEFORE + "rex", AFTER),
        (BEFORE[:-1], AFTER),
        (BEFORE[1:], AFTER),
        ("", AFTER),
        (BEFORE, "x" + AFTER),
    ):
        assert shown().rest("k", Cursor(before, after)) == ""
    assert shown().rest("other", Cursor(BEFORE, AFTER)) == ""


def test_a_window_may_lose_its_beginning_while_one_types() -> None:
    kept = shown(LONG)
    assert kept.rest("k", Cursor((LONG + "return")[40:], AFTER)) == TEXT[6:]
    assert kept.rest("k", Cursor((LONG + "return")[-100:], AFTER)) == ""


def test_a_window_may_grow() -> None:
    assert shown(LONG).rest("k", Cursor("x" + LONG, AFTER)) == ""


def test_nothing_is_no_prediction_and_forgets_none() -> None:
    kept = shown()
    kept.keep("k", Cursor("", ""), "")
    assert kept.rest("k", Cursor(BEFORE, AFTER)) == TEXT


def test_only_the_newest_are_remembered() -> None:
    kept = Shown(most=2)
    for key in ("a", "b", "a", "c"):
        kept.keep(key, Cursor("", ""), "x")
    assert [kept.rest(key, Cursor("", "")) for key in "abc"] == ["x", "", "x"]
