"""The table of remedies: which row counts, what is told, and to whom."""

from dataclasses import replace
from typing import Any

import pytest

from byok.core.chat import ChatRequest
from byok.dialects.error_bodies import refusal_of
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    RemedyRow,
    change_body,
    find_remedy,
    rewrite_chat,
    switch_row,
)

BODY = {"words": "a b c"}


def without_word(body: Any, remedy: Remedy) -> dict[str, Any]:
    kept = [word for word in body["words"].split() if word != remedy.what]
    return {**body, "words": " ".join(kept)}


def named_word(refused: RefusedRequest) -> tuple[str, str] | None:
    found = [w for w in refused.body["words"].split() if f"'{w}'" in refused.text]
    return (found[0], "") if found else None


ROW = RemedyRow(named_word, without_word, "Left out: {what}.")
TABLE = {"first": ROW, "second": ROW}


def refused(message: str, *known: Remedy, **fields: Any) -> RefusedRequest:
    error = refusal_of({"error": {"message": message}}, 400)
    return RefusedRequest(BODY, error, known=known, **fields)


def test_the_first_row_that_helps_counts() -> None:
    assert find_remedy(TABLE, refused("no 'b'")) == Remedy("first", "b")


def test_a_remedy_that_was_made_is_found_no_more() -> None:
    made = Remedy("first", "b")
    assert find_remedy(TABLE, refused("no 'b'", made)) == Remedy("second", "b")
    assert find_remedy({"first": ROW}, refused("no 'b'", made)) is None
    assert find_remedy(TABLE, refused("no 'z'")) is None


def test_remedies_are_made_in_turn_and_leave_the_body_as_it_was() -> None:
    remedies = [Remedy("first", "a"), Remedy("second", "c"), Remedy("unknown", "b")]
    assert change_body(TABLE, BODY, remedies) == ({"words": "b"}, ())
    assert BODY == {"words": "a b c"}


def test_new_remedies_are_told_in_one_sentence() -> None:
    remedies = [Remedy("first", "a"), Remedy("second", "c")]
    _, told = change_body(TABLE, BODY, remedies, new=remedies)
    assert told == ("Left out: a, c.",)
    _, told = change_body(TABLE, BODY, remedies, new=remedies[1:])
    assert told == ("Left out: c.",)


@pytest.mark.parametrize(("agent", "told"), [(True, 1), (False, 0)])
def test_a_remedy_for_agents_is_told_to_them_alone(agent: bool, told: int) -> None:
    row = RemedyRow(named_word, without_word, "No {what}.", is_for_agents=True)
    remedies = [Remedy("x", "a")]
    chat = ChatRequest((), agent=agent)
    _, notices = change_body({"x": row}, BODY, remedies, new=remedies, chat=chat)
    assert len(notices) == told


def test_a_known_remedy_is_told_where_it_matters() -> None:
    row = RemedyRow(named_word, without_word, "No.", lambda chat: chat.silent)
    known = [Remedy("x", "a")]
    silent = ChatRequest((), silent=True)
    assert change_body({"x": row}, BODY, known, chat=silent)[1] == ("No.",)
    assert change_body({"x": row}, BODY, known)[1] == ()


def test_a_remedy_that_would_not_change_the_conversation_is_none() -> None:
    row = RemedyRow(
        named_word, rewrite=lambda chat, remedy: replace(chat, question=remedy.what)
    )
    table = {"same": row, "other": ROW}
    asked = ChatRequest((), question="b")
    assert find_remedy(table, refused("no 'a'", chat=asked)) == Remedy("same", "a")
    assert find_remedy(table, refused("no 'b'", chat=asked)) == Remedy("other", "b")
    assert rewrite_chat(table, asked, [Remedy("same", "a"), Remedy("other", "b")]) == (
        replace(asked, question="a"),
        (),
    )


SWITCH = switch_row({"responses api": "responses", "v1/messages": "messages"})
