"""Typing along a prediction needs no other."""

from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.completion import Cursor, Shown

BEFORE, AFTER, TEXT = "def f():\n    ", "\n", "return 1\n    # done"
LONG = "".join(f"line {n}\n" for n in range(200))


def shown(before: str = BEFORE, text: str = TEXT) -> Shown:
    kept = Shown()
    kept.keep("k", Cursor(before, AFTER), text)
    return kept


@given(st.integers(0, len(TEXT) - 1))
def test_shown_completion_gives_the_rest_while_typing_along(typed: int) -> None:
    cursor = Cursor(BEFORE + TEXT[:typed], AFTER)
    assert shown().rest("k", cursor) == TEXT[typed:]


def test_shown_completion_ends_with_other_typing() -> None:
    for before, after in (
        (BEFORE + "rex", AFTER),
        (BEFORE[:-1], AFTER),
        (BEFORE[1:], AFTER),
        ("", AFTER),
        (BEFORE, "x" + AFTER),
    ):
        assert shown().rest("k", Cursor(before, after)) == ""
    assert shown().rest("other", Cursor(BEFORE, AFTER)) == ""


def test_shown_completion_allows_a_window_that_loses_its_beginning() -> None:
    kept = shown(LONG)
    assert kept.rest("k", Cursor((LONG + "return")[40:], AFTER)) == TEXT[6:]
    assert kept.rest("k", Cursor((LONG + "return")[-100:], AFTER)) == ""


def test_shown_completion_allows_a_window_that_grows() -> None:
    assert shown(LONG).rest("k", Cursor("x" + LONG, AFTER)) == ""


def test_shown_completions_of_the_newest_requests_are_kept() -> None:
    kept = Shown(most=2)
    for key in ("a", "b", "a", "c"):
        kept.keep(key, Cursor("", ""), "x")
    assert [kept.rest(key, Cursor("", "")) for key in "abc"] == ["x", "", "x"]
