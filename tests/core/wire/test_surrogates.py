"""Emoji in halves: joined across pieces, U+FFFD when the other half never comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.wire.json_body import SurrogateBuffer, join_surrogates
from tests.fakes.values import CUTS, cut

HIGH, LOW = "\ud83d", "\ude00"
LOST = "\ufffd"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("", "", id="nothing"),
        pytest.param("plain é 😀", "plain é 😀", id="whole characters"),
        pytest.param(f"a{HIGH}{LOW}b", "a😀b", id="a pair"),
        pytest.param(f"a{HIGH}b", f"a{LOST}b", id="a high half"),
        pytest.param(f"{LOW}b", f"{LOST}b", id="a low half"),
        pytest.param(f"{LOW}{HIGH}", LOST * 2, id="the wrong order"),
        pytest.param(f"{HIGH}{HIGH}{LOW}", f"{LOST}😀", id="a half before a pair"),
    ],
)
def test_surrogate_halves_are_joined_or_replaced(text: str, clean: str) -> None:
    assert join_surrogates(text) == clean


@pytest.mark.parametrize(
    ("pieces", "given_out", "rest"),
    [
        pytest.param(["a", "b"], ["a", "b"], "", id="nothing to hold"),
        pytest.param([f"a{HIGH}", f"{LOW}b"], ["a", "😀b"], "", id="an emoji in two"),
        pytest.param([HIGH, "", LOW], ["", "", "😀"], "", id="an empty piece between"),
        pytest.param([HIGH, "b"], ["", f"{LOST}b"], "", id="a half and then text"),
        pytest.param([HIGH, HIGH], ["", LOST], LOST, id="two high halves"),
        pytest.param(["a", LOW], ["a", LOST], "", id="a low half alone"),
        pytest.param([f"a{HIGH}"], ["a"], LOST, id="the end after a half"),
    ],
)
def test_a_high_surrogate_is_held_back(
    pieces: list[str], given_out: list[str], rest: str
) -> None:
    buffer = SurrogateBuffer()
    assert [buffer.feed(piece) for piece in pieces] == given_out
    assert buffer.flush() == rest
    assert buffer.flush() == ""


@given(st.text(f"ab{HIGH}{LOW}😀"), CUTS)
def test_surrogates_any_slicing_gives_the_same_text(
    text: str, places: list[int]
) -> None:
    buffer = SurrogateBuffer()
    out = "".join(buffer.feed(piece) for piece in cut(text, places))
    assert out + buffer.flush() == join_surrogates(text)
