"""A cursor: its line, what stands around it, and brackets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.completion import Cursor, brackets
from tests.fakes.linear import check_linear


def test_a_cursor_knows_its_line_whatever_ends_the_lines() -> None:
    cursor = Cursor("a\r\n  b", "c\r\n\r\n \r\n d\r\n e")
    assert (cursor.line, cursor.rest, cursor.next_line) == ("  b", "c", " d")
    assert (cursor.head, cursor.tail) == ("a\n  b", "c\n\n \n d\n e")


@pytest.mark.parametrize(
    ("before", "after", "one"),
    [("a", "b", True), ("a", " \nb", False), ("a\n  ", "b", False), ("", "", False)],
)
def test_cursor_between_two_pieces_of_code_continues_only_the_line(
    before: str, after: str, one: bool
) -> None:
    assert Cursor(before, after).one_line is one


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("f(a, [b])", (0, 0)),
        ("f(a, {", (0, 2)),
        (")]", (2, 0)),
        (")(", (1, 1)),
        ('x = "(((" + (', (0, 1)),
        (r'"\")" (', (0, 1)),
        ("`)` ' ) '", (0, 0)),
        ("it's (", (0, 1)),
        ('"(\n"(', (0, 2)),
        (r"\"(\" [", (0, 2)),
        (r"\(x, y) -> [", (0, 1)),
    ],
)
def test_cursor_counts_brackets_without_a_partner(
    code: str, counted: tuple[int, int]
) -> None:
    assert brackets(code) == counted


@given(st.text("()[]{}\"'`\\a\n", max_size=60))
def test_cursor_counts_no_bracket_twice(code: str) -> None:
    closing, opening = brackets(code)
    assert closing <= sum(map(code.count, ")]}"))
    assert opening <= sum(map(code.count, "([{"))


@pytest.mark.parametrize("piece", ['\\"', '\\"a\\":', "\\'", "\"'`", '"\\"'])
def test_cursor_reads_code_of_quotes_in_linear_time(piece: str) -> None:
    check_linear(lambda size: brackets(piece * size), 20_000)
