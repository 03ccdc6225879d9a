"""Lines and offsets agree with each other, whatever the file holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.stage import drain
from byok.protocols.augment.positions import (
    INSERTION,
    Endings,
    find,
    line_at,
    lines,
    normal,
    original,
    region,
)
from tests.fakes.values import CUTS, cut

FILES = st.text(alphabet="ab \t🚢é\u2028\u0085\x0c\r\n", max_size=60)


@given(FILES, st.data())
def test_position_offset_survives_line_ending_normalisation(
    file: str, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, len(file)))
    if file[offset - 1 : offset + 1] != "\r\n":
        assert original(file, len(normal(file[:offset]))) == offset


@given(FILES, st.data())
def test_position_lines_of_a_region_hold_its_old_text(
    file: str, data: st.DataObject
) -> None:
    whole = lines(file)
    first = data.draw(st.integers(0, len(whole) - 1))
    last = data.draw(st.integers(first, len(whole) - 1))
    old = "".join(whole[first : last + 1])
    begin = len("".join(whole[:first]))
    found = region(file, begin, old)
    if old.rstrip("\r\n"):
        assert found.start == first + 1
        assert found.shown == old
        assert "".join(whole[found.start - 1 : found.end]).startswith(
            old.rstrip("\r\n")
        )
    assert 1 <= found.start <= found.end <= len(whole) + 1


@given(FILES, FILES, FILES)
def test_position_of_a_text_in_a_file_is_found(a: str, b: str, c: str) -> None:
    file = f"{a}|{b}|{c}"
    place = find(file, f"|{normal(b)}|", normal(a), normal(c))
    assert place == len(a)


def test_position_between_cr_and_lf_is_before_the_line_end() -> None:
    assert [line_at("a\r\nb", offset) for offset in range(5)] == [1, 1, 1, 2, 2]


def test_position_among_equal_texts_is_chosen_by_the_surroundings() -> None:
    file = "a\r\nx\r\nb\r\nx\r\nc"
    assert find(file, "x\n", "b\n", "c") == 9
    assert find(file, "x\n", "a\n", "b") == 3
    assert find(file, "y") is None
    assert find(file, "") is None


@pytest.mark.parametrize(
    ("file", "begin", "old", "expected"),
    [
        ("a\r\n\r\n\r\nb\r\nc\r\n", 7, "b\r\n", (4, 4, "b\r\n")),
        ("a\rb\rc", 2, "b\rc", (2, 3, "b\rc")),
        ("a\n\n\n", 1, "\n\n", (1, 1, "a\n\n")),
        ("a\nb(x, y)\r\n", 4, "x", (2, 2, "b(x, y)")),
        ("a\n  b\n", 4, "", (2, 2, INSERTION + "a")),
        ("a \t\r\nb", 5, "", (2, 2, INSERTION + "a")),
        ("b", 0, "", (1, 1, INSERTION)),
        ("a\n", 2, "", (2, 2, INSERTION + "a")),
        ("a\u2028b\nc", 0, "a\u2028b\n", (1, 1, "a\u2028b\n")),
    ],
)
def test_position_region_has_lines_from_one(
    file: str, begin: int, old: str, expected: tuple[int, int, str]
) -> None:
    found = region(file, begin, old)
    assert (found.start, found.end, found.shown) == expected
    assert found.old == old


# A text takes on the line ends of its file


TEXTS = st.text(alphabet="a é🚢\u2028\r\n", max_size=40)


@pytest.mark.parametrize(
    ("ending", "last", "text", "expected"),
    [
        ("\r\n", None, "a\nb\n", "a\r\nb\r\n"),
        ("\r", None, "a\r\nb", "a\rb"),
        ("", None, "a\r\nb\rc\n", "a\r\nb\rc\n"),
        ("\n", True, "a", "a\n"),
        ("", True, "a", "a\n"),
        ("\n", False, "a\n", "a"),
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
