"""The end of a sentence in the chat's input box."""

from typing import Any

import pytest

from byok.core.chat import Role
from byok.protocols.augment.prompts.chat_texts import decode_chat_input
from tests.fakes.bodies import exchange
from tests.fakes.jobs import PLAIN, STATE, events, texts, whole

BODY: dict[str, Any] = {"prompt": "Why is the fer", "suffix": " today?"}


def test_chat_input_is_completed_by_chat_and_never_by_fim() -> None:
    body = {**BODY, "chat_history": [exchange("Is it late?", "Yes.")]}
    chat = decode_chat_input(body, PLAIN, STATE).chat
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
    found = whole(decode_chat_input, BODY, events(*said))
    assert found["text"] == text
    assert len(found["completion_items"]) == bool(text)


def test_chat_input_that_is_empty_is_not_completed() -> None:
    assert decode_chat_input({"prompt": ""}, PLAIN, STATE).chat.messages == ()
