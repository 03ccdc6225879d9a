"""Messages keep what they say about code and lose what they say to machines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.workspace.git_history import LONGEST, clean_message
from tests.fakes.linear import check_linear


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("Fix the parser\n", "Fix the parser"),
        ("Fix it (#12)\n\nSee #13 there\n", "Fix it\nSee there"),
        ("One\n\nSigned-off-by: A <a@b.org>\nChange-Id: I1\n", "One"),
        ("One\n\nFixes #12\nCloses: 13\n", "One"),
        ("Read https://example.org/x?y now", "Read now"),
        ("One\n\n```\ncode()\n```\nTwo", "One\nTwo"),
        ("One\n\n    indented()\n> said\n| a | b |\nTwo", "One\nTwo"),
        ("One\n\nReviewers: A, B\nmore names", "One"),
        ("One\nTest Plan: make check\nall green", "One"),
        ("Reviewers are named now", "Reviewers are named now"),
        ("a\x1b[31mb\x00c\u2028d", "a [31mb c d"),
        ("Revert 0123456789abcdef0123", "Revert"),
        ("", ""),
        ("\n \n", ""),
    ],
)
def test_commit_message_text_is_cleaned(message: str, kept: str) -> None:
    assert clean_message(message) == kept


def test_commit_message_text_is_truncated() -> None:
    assert len(clean_message("word " * 10_000)) == LONGEST


@given(st.text())
def test_commit_message_text_has_short_lines_without_control_characters(
    text: str,
) -> None:
    found = clean_message(text)
    assert len(found) <= LONGEST
    assert all(line.isprintable() or line for line in found.split("\n"))
    assert not {chr(n) for n in (*range(10), *range(11, 32), 127)} & set(found)


@pytest.mark.parametrize(
    "piece", ["a", "a@", "fix ", " ", "a-", "#1", "abcdef01", "\t"]
)
def test_commit_message_text_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: clean_message(f"fix{piece * size}x"), 1000)
