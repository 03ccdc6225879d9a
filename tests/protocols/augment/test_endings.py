"""A text takes on the line ends of its file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.stage import drain
from byok.protocols.augment.positions import Endings
from tests.fakes.slices import CUTS, cut

TEXTS = st.text(alphabet="a é🚢\u2028\r\n", max_size=40)


@pytest.mark.parametrize(
    ("ending", "last", "text", "expected"),
    [
        ("\r\n", None, "a\nb\n", "a\r\nb\r\n"),
        ("\r", None, "a\r\nb", "a\rb"),
        ("\n", None, "a\r\nb\rc", "a\nb\nc"),
        ("", None, "a\r\nb\rc\n", "a\r\nb\rc\n"),
        ("\n", True, "a", "a\n"),
        ("\r\n", True, "a\n", "a\r\n"),
        ("", True, "a", "a\n"),
        ("\n", False, "a\n", "a"),
        ("\n", False, "a\n\n", "a\n"),
        ("\n", True, "", ""),
    ],
)
def test_line_endings_are_those_of_the_file(
    ending: str, last: bool | None, text: str, expected: str
) -> None:
    assert "".join(drain(Endings(ending, last), [text])) == expected
    assert "".join(drain(Endings(ending, last), text)) == expected


@given(
    TEXTS,
    st.sampled_from(["", "\n", "\r", "\r\n"]),
    st.sampled_from([None, True, False]),
    CUTS,
)
def test_line_endings_any_slicing_gives_the_same(
    text: str, ending: str, last: bool | None, places: list[int]
) -> None:
    pieces = cut(text, places)
    whole = "".join(drain(Endings(ending, last), [text]))
    assert "".join(drain(Endings(ending, last), pieces)) == whole
