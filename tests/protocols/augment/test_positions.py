"""Lines and offsets agree with each other, whatever the file holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.positions import (
    INSERTION,
    find,
    line_at,
    lines,
    normal,
    original,
    region,
)

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
        ("🚢\nb\n", 2, "b\n", (2, 2, "b\n")),
        ("a\n\n\n", 1, "\n\n", (1, 1, "a\n\n")),
        ("a\nb(x, y)\r\n", 4, "x", (2, 2, "b(x, y)")),
        ("a\nb(\r\n", 4, "", (2, 2, "b(")),
        ("a\n  b\n", 4, "", (2, 2, INSERTION + "a")),
        ("a \t\r\nb", 5, "", (2, 2, INSERTION + "a")),
        ("b", 0, "", (1, 1, INSERTION)),
        ("", 0, "", (1, 1, INSERTION)),
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
