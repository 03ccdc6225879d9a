"""Stages in a row behave like one."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.stage import Stage, chain, drain


class Pairs:
    """Joins two items with a letter; an odd one comes out at the flush."""

    def __init__(self, glue: str) -> None:
        self._glue = glue
        self._held: list[str] = []

    def feed(self, item: str) -> Iterator[str]:
        self._held.append(item)
        if len(self._held) == 2:
            yield self._give()

    def flush(self) -> Iterator[str]:
        if self._held:
            yield self._give()

    def _give(self) -> str:
        joined, self._held = self._glue.join(self._held), []
        return joined


class Letters:
    """Takes items apart."""

    def feed(self, item: str) -> list[str]:
        return list(item)

    def flush(self) -> list[str]:
        return ["."]


def test_chained_stages_flush_in_order() -> None:
    both = chain(Pairs("+"), Pairs("-"))
    assert [out for item in "abc" for out in both.feed(item)] == []
    assert list(both.flush()) == ["a+b-c"]
    assert list(both.flush()) == []


class Failing:
    """Gives every letter of an item, and fails at a digit."""

    def feed(self, item: str) -> Iterator[str]:
        for letter in item:
            if letter.isdecimal():
                raise ValueError(letter)
            yield letter

    def flush(self) -> list[str]:
        return []


@pytest.mark.parametrize("outer", [Letters(), Failing()], ids=["list", "iterator"])
def test_chained_stages_give_what_came_before_a_failure(outer: Stage[str, str]) -> None:
    got: list[str] = []
    with pytest.raises(ValueError, match="1"):
        got += chain(Failing(), outer).feed("ab1c")
    assert got == ["a", "b"]


@given(st.lists(st.text(max_size=3), max_size=12))
def test_chained_stages_are_associative(items: list[str]) -> None:
    left: Stage[str, str] = chain(chain(Pairs("+"), Letters()), Pairs("-"))
    right: Stage[str, str] = chain(Pairs("+"), chain(Letters(), Pairs("-")))
    assert list(drain(left, items)) == list(drain(right, items))
