"""Announcements and quotation marks go, the text comes out as it went in."""

from collections.abc import Iterable

import pytest

from byok.core.stage import Stage, drain
from byok.protocols.augment.remarks import Unannounced, Unquoted


def out(stage: Stage[str, str], pieces: Iterable[str]) -> str:
    return "".join(drain(stage, pieces))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Here is the completion:\n    return a", "    return a"),
        ("Sure! Here's the completion:\r\n\r\n\treturn a\n", "\treturn a\n"),
        ("Here is the completion:", ""),
        ("here = 1\n", "here = 1\n"),
        ("  sure", "  sure"),
        ("", ""),
    ],
)
def test_announcing_first_line_is_dropped(answer: str, text: str) -> None:
    assert out(Unannounced(), answer) == out(Unannounced(), [answer]) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The message:\n\nFix it", "Fix it"),
        ("Fix it\n\nWhy:\n- x", "Fix it\n\nWhy:\n- x"),
        ("Fix it:", "Fix it:"),
        ("Fix it:\n", "Fix it:\n"),
    ],
)
def test_announcing_first_line_with_a_colon_in_strict_mode(
    answer: str, text: str
) -> None:
    assert out(Unannounced(strict=True), answer) == text
    assert out(Unannounced(strict=True), [answer]) == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ('"Fix it"', "Fix it"),
        (" “Fix it”\n", "Fix it"),
        ("`Fix it`", "Fix it"),
        ('"', '"'),
        ('"Fix" it', '"Fix" it'),
        ('Fix "it"', 'Fix "it"'),
        ("", ""),
    ],
)
def test_quotation_marks_around_all_of_it_are_removed(answer: str, text: str) -> None:
    assert out(Unquoted(), answer) == out(Unquoted(), [answer]) == text
