"""Descriptions that are shortened to their first sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.tools import shorten
from tests.fakes.linear import check_linear

MORE = " And more words follow here, which nobody needs to read at all."

CHINESE = "读取工作区中的一个文件，并返回其内容。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reads a file. Quickly.", "Reads a file. Quickly."),
        (f"Reads a file of the workspace.{MORE}", "Reads a file of the workspace."),
        (
            f"Reads files, e.g. of Fig. 2 and i.e. notes.md or v1.2.{MORE}",
            "Reads files, e.g. of Fig. 2 and i.e. notes.md or v1.2.",
        ),
        ("Does it (really!). " + "X" * 60, "Does it (really!)."),
        ("# View\n\nReads a file.\n\nThen more." + MORE, "Reads a file."),
        ("View\n====\nReads a file.\n\n" + MORE * 2, "Reads a file."),
        ("```\ncode\n```\nReads a file.\n\n" + MORE, "Reads a file."),
        ("<example>\nx\n</example>\nReads a file.\n\n" + MORE, "Reads a file."),
        ("Examples:\n- one\n- two\n\nReads a file.\n\n" + MORE, "Reads a file."),
        ("Reads a file.\nExample:\n  view a\n" + MORE, "Reads a file."),
        ("Reads a file. It:\n- does this\n- and that" + MORE, "Reads a file."),
        ("It can:\n1. do this\n2. and that" + MORE, "It can"),
        ("# Only a heading\n\n```\n" + "x" * 70, "Only a heading"),
        (f"{CHINESE}{'然后' * 40}", CHINESE),
    ],
)  # fmt: skip
def test_whole_sentences_of_the_first_paragraph_are_kept(
    text: str, expected: str
) -> None:
    assert shorten(text, 64) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four five", "one two three…"),
        ("one two three, four five", "one two three…"),
        ("No. one two three four", "No. one two…"),
        ("x" * 30, "x" * 15 + "…"),
    ],
)
def test_a_sentence_that_is_too_long_is_cut_behind_a_word(
    text: str, expected: str
) -> None:
    assert shorten(text, 16) == expected


PIECES = st.sampled_from(
    [
        "Read it. ",
        "word ",
        "# ",
        "\n",
        "\n\n",
        "```\n",
        "<example>",
        "- ",
        "。",
        "e.g. ",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join))
def test_what_is_left_fits_says_something_and_stays(text: str) -> None:
    for limit in (20, 100):
        found = shorten(text, limit)
        assert len(found) <= min(limit, len(text))
        assert bool(found.strip()) or not text.strip()
        assert shorten(found, limit) == found


@pytest.mark.parametrize("piece", ["a", " ", "\n", ".", "`", "<example", "a. ", "# \n"])
def test_a_hostile_description_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: shorten(piece * size, 200), 400_000)
