"""Stages in a row behave like one."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from byok.stage import Stage, chain, drain


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


def test_what_the_first_gives_goes_through_the_second() -> None:
    both = chain(Pairs("+"), Letters())
    assert list(both.feed("a")) == []
    assert list(both.feed("b")) == ["a", "+", "b"]


def test_a_flush_lets_the_first_go_through_the_second_and_then_the_second() -> None:
    both = chain(Pairs("+"), Pairs("-"))
    assert [out for item in "abc" for out in both.feed(item)] == []
    assert list(both.flush()) == ["a+b-c"]
    assert list(both.flush()) == []


def test_drain_feeds_everything_and_flushes_once() -> None:
    assert list(drain(Pairs("+"), "abc")) == ["a+b", "c"]
    assert list(drain(Letters(), [])) == ["."]


@given(st.lists(st.text(max_size=3), max_size=12))
def test_how_a_chain_is_bracketed_makes_no_difference(items: list[str]) -> None:
    left: Stage[str, str] = chain(chain(Pairs("+"), Letters()), Pairs("-"))
    right: Stage[str, str] = chain(Pairs("+"), chain(Letters(), Pairs("-")))
    assert list(drain(left, items)) == list(drain(right, items))
