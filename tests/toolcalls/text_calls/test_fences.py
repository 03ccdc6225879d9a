"""Code fences in a text that comes in pieces."""

import pytest
from hypothesis import given

from byok.toolcalls.text_calls.fences import CodeFence
from tests.fakes.slices import CUTS, cut

TEXT = "a\n```py\nb\n```\nc ``` d\n  ```\ne"


def states(text: str) -> list[bool]:
    """Tell for each beginning of a text whether it ends inside of a fence."""
    fence, found = CodeFence(), []
    for character in text:
        fence.note(character)
        found.append(fence.is_open)
    return found


def test_fence_opens_and_closes_with_its_lines() -> None:
    found = {c: states(TEXT)[TEXT.index(c)] for c in "abcde"}
    assert found == {"a": False, "b": True, "c": False, "d": False, "e": True}


@pytest.mark.parametrize("text", ["``", "`` `", "x```"])
def test_fence_needs_three_backticks_at_the_start_of_a_line(text: str) -> None:
    fence = CodeFence()
    fence.note(text)
    assert not fence.is_open


@given(CUTS)
def test_fence_is_the_same_however_the_text_is_cut(places: list[int]) -> None:
    fence = CodeFence()
    for piece in cut(TEXT, places):
        fence.note(piece)
    assert fence.is_open
