"""Which request follows which, and which takes the place of another."""

from typing import Any

import pytest

from byok.protocols.augment.chat_request import ConversationPlace, place_of

ONE, TWO = {"request_id": "r1"}, {"request_id": "r2"}


def chat(*history: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"conversation_id": "c", "chat_history": [*history], **fields}


def test_conversation_place_follows_what_was_said_last() -> None:
    first, second = place_of(chat(ONE)), place_of(chat(ONE, TWO))
    assert first is not None
    assert second is not None
    assert first.conversation == second.conversation == "c"
    assert first.after != second.after


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"chat_history": [ONE]},
        {"conversation_id": "", "chat_history": [ONE]},
        {"conversation_id": ["c"], "chat_history": [ONE]},
        chat(ONE, silent=True),
        chat(),
        {"conversation_id": "c"},
    ],
    ids=str,
)
def test_what_follows_nothing_in_a_conversation_has_no_place(
    body: dict[str, Any],
) -> None:
    assert place_of(body) is None


def test_conversation_place_of_a_repeated_question_is_the_same() -> None:
    again, older = place_of(chat(ONE, message="b")), place_of(chat(ONE, message="a"))
    assert again == older == ConversationPlace("c", "1 r1")


@pytest.mark.parametrize("history", [None, "x", [1], [{}], {"a": 1}, [[ONE]]], ids=str)
def test_conversation_place_with_an_odd_history(history: object) -> None:
    place = place_of({"conversation_id": "c", "chat_history": history})
    assert place == (ConversationPlace("c", "1 ") if history == [{}] else None)
