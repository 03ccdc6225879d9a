"""Titles are one short line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled
from byok.protocols.augment.prompts.chat_texts import MAX_CHARS, decode_title, tidy
from tests.fakes.bodies import exchange
from tests.fakes.jobs import PLAIN, STATE, events, whole

BODY = {"chat_history": [exchange("Why is the ferry late?", "Fog.")]}


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Sure! Here's a title:\n\nFerry delays", "Ferry delays"),
        ("Ferry delays:", "Ferry delays"),
        ('"Ferry delays in fog."\n\nbecause', "Ferry delays in fog"),
        ("**Title: Ferry delays**", "Ferry delays"),
        ("```\nFerry\n```", "Ferry"),
        ("Learning C#", "Learning C#"),
        (" ".join("abcdefghi"), " ".join("abcdefgh")),
        ("x" * 100, "x" * 60),
        (" \n", ""),
    ],
)
def test_a_title_is_tidied(answer: str, title: str) -> None:
    assert tidy(answer) == title


@given(st.text(max_size=200))
def test_a_title_is_always_one_short_line(answer: str) -> None:
    title = tidy(answer)
    assert len(title) <= MAX_CHARS
    assert len(title.splitlines()) <= 1
    assert title == title.strip()


def test_conversation_title_stands_in_both_fields() -> None:
    title = "Ferry delays"
    assert whole(decode_title, BODY, events(title)) == {"text": title, "title": title}


def test_conversation_title_of_an_empty_conversation_asks_nobody() -> None:
    assert decode_title({}, PLAIN, STATE).chat.messages == ()
    assert whole(decode_title, {}, []) == {"text": "", "title": ""}


def test_conversation_title_that_is_empty_is_an_error() -> None:
    with pytest.raises(UpstreamGarbled, match="empty answer"):
        whole(decode_title, BODY, events("```"))
