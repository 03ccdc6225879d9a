"""Which request follows which, and which takes the place of another."""

from typing import Any

import pytest

from byok.augment.conversation import Place, place_of

ONE, TWO = {"request_id": "r1"}, {"request_id": "r2"}


def chat(*history: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"conversation_id": "c", "chat_history": [*history], **fields}


def test_a_request_stands_behind_what_was_said_last() -> None:
    assert place_of(chat()) == Place("c")
    first, second = place_of(chat(ONE)), place_of(chat(ONE, TWO))
    assert first is not None
    assert second is not None
    assert first.conversation == second.conversation == "c"
    assert first.after != second.after


@pytest.mark.parametrize(
    "body",
    [{}, {"conversation_id": ""}, {"conversation_id": ["c"]}, chat(ONE, silent=True)],
    ids=str,
)
def test_what_is_no_turn_of_a_conversation_has_no_place(body: dict[str, Any]) -> None:
    assert place_of(body) is None


def test_the_same_place_in_a_history_is_taken_over() -> None:
    again, older = place_of(chat(ONE, message="b")), place_of(chat(ONE, message="a"))
    assert again is not None
    assert older is not None
    assert again.takes_over(older)


def test_a_later_turn_takes_nothing_over() -> None:
    assert not Place("c", "2 r2").takes_over(Place("c", "1 r1"))


def test_questions_without_a_history_are_independent() -> None:
    assert not Place("c").takes_over(Place("c"))


@pytest.mark.parametrize("history", [None, "x", [1], [{}], {"a": 1}, [[ONE]]], ids=str)
def test_an_odd_history_does_no_harm(history: object) -> None:
    assert place_of({"conversation_id": "c", "chat_history": history}) is not None
