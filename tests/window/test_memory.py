"""A compaction is found by what it replaced, and by nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.chat import Message, Part, Role, TextPart, ThinkingPart, ToolCall, ToolResult
from byok.window.memory import Compaction, Compactions
from tests.fakes.histories import PNG, agent, histories, step, user

BODY = agent(10, 50)
FRONT = (user("Summary."),)


def keeping(*lengths: int, model: str = "m") -> Compactions:
    kept = Compactions()
    for length in lengths:
        kept.keep(model, BODY, Compaction(length, FRONT), 10)
    return kept


def test_the_longest_one_is_found_in_a_conversation_that_went_on() -> None:
    kept = keeping(5, 9, 3)
    found = kept.find("m", (*BODY, *step(77, "more")))
    assert found == Compaction(9, FRONT)
    assert found.applied(BODY) == (*FRONT, *BODY[9:])
    assert kept.find("m", BODY[:7]) == Compaction(5, FRONT)
    assert kept.find("m", BODY[:9]) == Compaction(9, FRONT)
    assert kept.find("m", BODY[:2]) is None


def test_each_model_has_its_own() -> None:
    kept = keeping(5)
    assert kept.knows("m")
    assert not kept.knows("n")
    assert kept.find("n", BODY) is None


@given(histories(), st.data())
def test_an_edited_history_is_another_one(
    body: tuple[Message, ...], data: st.DataObject
) -> None:
    kept = Compactions()
    kept.keep("m", body, Compaction(len(body), FRONT), 10)
    assert kept.find("m", body) is not None
    place = data.draw(st.integers(0, len(body) - 1))
    message = body[place]
    edited = replace(message, parts=(*message.parts[:-1], TextPart("edited")))
    assert kept.find("m", (*body[:place], edited, *body[place + 1 :])) is None
    assert kept.find("m", body[:-1]) is None


PAIRS: list[tuple[tuple[Part, ...], tuple[Part, ...]]] = [
    ((TextPart("ab"),), (TextPart("a"), TextPart("b"))),
    ((TextPart("a"),), (ThinkingPart("a"),)),
    ((ToolCall("a", "b", "c"),), (ToolResult("a", "b", "c"),)),
    ((ToolCall("a", "bc", "{}"),), (ToolCall("ab", "c", "{}"),)),
    ((TextPart("|1|a"),), (TextPart("a"),)),
    ((PNG,), (replace(PNG, media_type="image/gif"),)),
    ((TextPart("\ud800"),), (TextPart("\udc00"),)),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_differs_in_anything_has_another_digest(
    one: tuple[Part, ...], other: tuple[Part, ...]
) -> None:
    kept = Compactions()
    kept.keep("m", [Message(Role.USER, one)], Compaction(1, FRONT), 10)
    assert kept.find("m", [Message(Role.USER, one)])
    assert kept.find("m", [Message(Role.ASSISTANT, one)]) is None
    assert kept.find("m", [Message(Role.USER, other)]) is None


def test_what_was_not_used_for_longest_goes_first() -> None:
    kept = Compactions(room=30)
    for length in (3, 5, 7):
        kept.keep("m", BODY, Compaction(length, FRONT), 10)
    assert kept.find("m", BODY[:3])  # now 5 is the oldest
    kept.keep("m", BODY, Compaction(9, FRONT), 10)
    assert kept.find("m", BODY[:5]) == Compaction(3, FRONT)
    assert kept.find("m", BODY[:7]) == Compaction(7, FRONT)


def test_the_newest_is_kept_however_large_it_is() -> None:
    kept = Compactions(room=5)
    kept.keep("m", BODY, Compaction(3, FRONT), 10)
    kept.keep("m", BODY, Compaction(5, FRONT), 100)
    assert kept.find("m", BODY) == Compaction(5, FRONT)
    assert kept.find("m", BODY[:4]) is None
