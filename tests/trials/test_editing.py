"""Replacements and insertions, as the tool of the clients makes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.trials.editing import TextEdit, insert_lines, replace_texts, show_lines
from byok.trials.trial_files import ToolFailed

TEXT = "one\nsame\ntwo\nsame\nthree\n"


@pytest.mark.parametrize(
    ("edits", "text", "places"),
    [
        ([TextEdit("two", "2")], "one\nsame\n2\nsame\nthree\n", ((3, 3),)),
        ([TextEdit("same", "x", 4, 4)], "one\nsame\ntwo\nx\nthree\n", ((4, 4),)),
        ([TextEdit("same", "x", 1, 3)], "one\nx\ntwo\nsame\nthree\n", ((2, 2),)),
        ([TextEdit("one", "1", 99, 99)], TEXT.replace("one", "1"), ((1, 1),)),
        (
            [TextEdit("three", "3"), TextEdit("one\n", "0\n1\n2\n")],
            "0\n1\n2\nsame\ntwo\nsame\n3\n",
            ((1, 3), (7, 7)),
        ),
        ([TextEdit("two\n", "")], "one\nsame\nsame\nthree\n", ((3, 3),)),
    ],
)
def test_texts_are_replaced(
    edits: list[TextEdit], text: str, places: tuple[tuple[int, int], ...]
) -> None:
    assert replace_texts(TEXT, edits) == (text, places)


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([TextEdit("four", "4")], "not in the file"),
        ([TextEdit("two ", "4")], "exactly"),
        ([TextEdit("same", "x")], "lines: 2, 4"),
        ([TextEdit("same", "x", 1, 5)], "lines: 2, 4"),
        ([TextEdit("same", "x", 9, 9)], "lines: 2, 4"),
        ([TextEdit("", "x")], "empty"),
        ([TextEdit("one\nsame", "x"), TextEdit("same\ntwo", "y")], "overlap"),
    ],
)
def test_a_replacement_that_is_not_clear_is_refused(
    edits: list[TextEdit], why: str
) -> None:
    with pytest.raises(ToolFailed, match=why):
        replace_texts(TEXT, edits)


def test_an_empty_file_is_filled_by_replacing_nothing() -> None:
    assert replace_texts(" \n", [TextEdit("", "a = 1\n")]).text == "a = 1\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (0, "new\none\ntwo"),
        (1, "one\nnew\ntwo"),
        (2, "one\ntwo\nnew\n"),
    ],
)
def test_lines_are_inserted_behind_a_line(line: int, text: str) -> None:
    edited = insert_lines("one\ntwo", line, "new")
    assert edited.text == (text if text.endswith("\n") else f"{text}\n")
    assert edited.places == ((line + 1, line + 1),)


@pytest.mark.parametrize("line", [-1, 3, 10**30])
def test_lines_are_not_inserted_where_there_is_no_line(line: int) -> None:
    with pytest.raises(ToolFailed, match="no line"):
        insert_lines("one\ntwo", line, "new")


@given(st.text("ab\n"), st.text("ab\n", min_size=1), st.text("ab\n"))
def test_a_replacement_changes_one_place_or_nothing(
    text: str, old: str, new: str
) -> None:
    if text.count(old) == 1 and text.find(old, text.find(old) + 1) < 0:
        assert replace_texts(text, [TextEdit(old, new)]).text == text.replace(old, new)
    elif old not in text:
        with pytest.raises(ToolFailed):
            replace_texts(text, [TextEdit(old, new)])


def test_lines_are_shown_with_their_numbers() -> None:
    assert (
        show_lines(TEXT, 2, 2, around=1) == "     1\tone\n     2\tsame\n     3\ttwo\n"
    )
    assert show_lines(TEXT, 5, 9, around=0) == "     5\tthree\n"
    assert show_lines("", 1, 1) == ""
