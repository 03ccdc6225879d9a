"""Ways to cut an input into pieces, for the tests that say: any slicing is equal."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

from hypothesis import strategies as st

Whole = TypeVar("Whole", bytes, str)

CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def cut(whole: Whole, places: Iterable[int]) -> list[Whole]:
    """Cut at the given places, wrapped to the length; empty pieces may occur."""
    inner: list[int] = sorted(place % (len(whole) + 1) for place in places)
    return [whole[a:b] for a, b in pairwise([0, *inner, len(whole)])]


def singles(whole: Whole) -> list[Whole]:
    """Cut into pieces of one."""
    return [whole[i : i + 1] for i in range(len(whole))]
