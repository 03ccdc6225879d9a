"""Short texts beside a chat: titles, the rest of a sentence, better prompts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import Role
from byok.core.errors import UpstreamGarbled
from byok.core.events import FinishReason, Notice
from byok.protocols.augment.prompts.chat_texts import (
    MAX_CHARS,
    decode_chat_input,
    decode_enhancer,
    decode_title,
    tidy,
)
from tests.fakes.bodies import exchange, text_node
from tests.fakes.jobs import PLAIN, events, streamed, texts, whole

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


def test_conversation_title_that_failed_says_why() -> None:
    with pytest.raises(UpstreamGarbled) as caught:
        whole(decode_title, BODY, [Notice("Cut.", "tool_call_incomplete"), *events()])
    assert caught.value.code == "tool_call_incomplete"


def test_conversation_title_of_an_empty_conversation_asks_nobody() -> None:
    assert decode_title({}, PLAIN).chat.messages == ()
    assert whole(decode_title, {}, []) == {"text": "", "title": ""}


def test_conversation_title_that_is_empty_is_an_error() -> None:
    with pytest.raises(UpstreamGarbled, match="empty answer"):
        whole(decode_title, BODY, events("```"))


TYPED: dict[str, Any] = {"prompt": "Why is the fer", "suffix": " today?"}


def test_chat_input_is_completed_by_chat_and_never_by_fim() -> None:
    body = {**TYPED, "chat_history": [exchange("Is it late?", "Yes.")]}
    chat = decode_chat_input(body, PLAIN).chat
    assert chat.fim is None
    assert "Why is the fer[[CURSOR]] today?" in texts(chat)
    assert "Assistant: Yes." in texts(chat)
    assert "one line" in texts(chat, Role.SYSTEM)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (("ry late",), "ry late"),
        (("Why is the ferry", " late today?"), "ry late"),
        (("ry late\nBecause", " of fog."), "ry late"),
        ((" \n",), ""),
    ],
)
def test_chat_input_completion_ends_the_sentence(
    said: tuple[str, ...], text: str
) -> None:
    found = whole(decode_chat_input, TYPED, events(*said))
    assert found["text"] == text
    assert len(found["completion_items"]) == bool(text)


def test_chat_input_that_is_empty_is_not_completed() -> None:
    assert decode_chat_input({"prompt": ""}, PLAIN).chat.messages == ()


PROMPT: dict[str, Any] = {
    "message": "make fares faster",
    "nodes": [text_node("make fares faster")],
    "chat_history": [exchange("what is slow?", "The loop.")],
    "user_guidelines": "Write British English.",
    "mode": "AGENT",
}


def test_the_prompt_is_shown_once_behind_what_was_said() -> None:
    chat = decode_enhancer(PROMPT, PLAIN).chat
    shown = texts(chat)
    assert shown.count("make fares faster") == 1
    assert shown.index("what is slow?") < shown.index("The loop.")
    assert shown.endswith("make fares faster")
    assert "British" in texts(chat, Role.SYSTEM)
    assert "tools you are given" not in texts(chat, Role.SYSTEM)


def test_the_text_is_the_new_prompt_and_nothing_else() -> None:
    ran = streamed(
        decode_enhancer, PROMPT, events("\n", "Make `fare()`", " faster. \n")
    )
    assert ran.text == "Make `fare()` faster."
    assert ran.lines[-1]["stop_reason"] == 1


def test_code_in_the_new_prompt_keeps_its_fence() -> None:
    said = "```py\nx\n```\nis slow"
    assert streamed(decode_enhancer, PROMPT, events(said)).text == said
    assert (
        streamed(decode_enhancer, PROMPT, events("```md\nfaster\n```")).text == "faster"
    )


def test_an_answer_that_fails_leaves_the_users_prompt() -> None:
    for finish in (FinishReason.CONTENT_FILTER, FinishReason.LENGTH):
        ran = streamed(decode_enhancer, PROMPT, events("Make", finish=finish))
        assert ran.text == "make fares faster"
        assert ran.lines[-1]["error"]["code"] == "upstream_cut"
        assert ran.lines[-1]["error"]["request_id"] == "r-1"


def test_prompt_enhancer_with_nothing_to_rewrite_is_empty() -> None:
    assert decode_enhancer({"message": "..."}, PLAIN).chat.messages != ()
    assert decode_enhancer({}, PLAIN).chat.messages == ()
    ran = streamed(decode_enhancer, {}, [])
    assert (ran.text, ran.error) == ("", None)
