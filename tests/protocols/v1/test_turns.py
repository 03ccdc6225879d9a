"""Conversations of clients: every call has one result, directly behind it."""

import pytest

from byok.core.chat import (
    ImagePart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.core.errors import BadRequest
from byok.protocols.v1.turns import BEGINNING, Turns

PNG = ImagePart("image/png", "AAAA")


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "view", "{}")


def result(call_id: str, content: str = "ok") -> ToolResult:
    return ToolResult(call_id, "", content)


def shape(turns: Turns) -> list[tuple[str, str]]:
    """Return the role and the words, ids or results of each message."""
    return [(m.role.value, " ".join(map(_word, m.parts))) for m in turns.messages()]


def _word(part: object) -> str:
    match part:
        case TextPart(text=text) | ThinkingPart(text=text):
            return text
        case ToolCall():
            return part.id
        case ToolResult():
            assert part.name == "view"
            return f"{part.call_id}={part.content}"
        case _:
            return "image"


def test_turns_results_stand_behind_their_calls() -> None:
    turns = Turns()
    turns.add_system("Be brief.")
    turns.add_system(" ")
    turns.add_user([TextPart("Hi."), TextPart(""), PNG])
    turns.add_answer([ThinkingPart("hm"), call("a")])
    turns.add_answer([call("b"), TextPart("")])
    turns.add_user([TextPart("Wait.")])
    turns.add_result(result("b", "B"))
    turns.add_result(result("a", "A"))
    turns.add_answer([call("c")])
    turns.add_result(result("c", "C"))
    turns.add_answer([TextPart("Done.")])
    assert shape(turns) == [
        ("system", "Be brief."),
        ("user", "Hi. image"),
        ("assistant", "hm a b"),
        ("tool", "a=A"),
        ("tool", "b=B"),
        ("user", "Wait."),
        ("assistant", "c"),
        ("tool", "c=C"),
        ("assistant", "Done."),
    ]
    assert turns.user_texts == ["Hi.", "Wait."]


def test_turns_a_result_without_a_call_becomes_text() -> None:
    turns = Turns()
    turns.add_result(ToolResult("gone", "", "old", is_error=True, images=(PNG,)))
    turns.add_answer([call("a")])
    turns.add_result(result("a", "first"))
    turns.add_result(result("a", "first"))
    turns.add_result(result("a", "second"))
    said = shape(turns)
    assert said[0][1].endswith("id: gone\nstatus: error\nold image")
    assert said[2] == ("tool", "a=first")
    assert said[3][1].endswith("id: a\nstatus: ok\nsecond")
    assert len(said) == 4


def test_turns_results_of_calls_with_one_id_belong_to_them_in_order() -> None:
    turns = Turns()
    turns.add_user([TextPart("Both?")])
    turns.add_answer([call("a")])
    turns.add_answer([call("a")])
    turns.add_result(result("a", "1"))
    turns.add_result(result("a", "2"))
    turns.add_answer([call("a")])
    turns.add_result(result("a", "3"))
    assert shape(turns) == [
        ("user", "Both?"),
        ("assistant", "a a_2"),
        ("tool", "a=1"),
        ("tool", "a_2=2"),
        ("assistant", "a_3"),
        ("tool", "a_3=3"),
    ]


def test_turns_a_repeated_id_is_made_unique() -> None:
    turns = Turns()
    turns.add_user([TextPart("Hi.")])
    for content in ("one", "two", "three"):
        turns.add_answer([call("a")])
        turns.add_result(result("a", content))
    said = [words for role, words in shape(turns) if role == "tool"]
    assert said == ["a=one", "a_2=two", "a_3=three"]


def test_turns_late_instructions_are_words_of_the_user() -> None:
    turns = Turns()
    turns.add_user([TextPart("Hi.")])
    turns.add_system("Be brief.")
    assert shape(turns) == [("user", "Hi. [instructions]\nBe brief.")]


def test_turns_begin_with_the_user() -> None:
    turns = Turns()
    turns.add_system("Be brief.")
    assert turns.messages() == (Message(Role.USER, (TextPart("Be brief."),)),)
    turns.add_answer([TextPart("Hello.")])
    assert shape(turns)[1] == ("user", BEGINNING)


def test_turns_of_nothing_are_refused() -> None:
    with pytest.raises(BadRequest, match="nothing to answer"):
        Turns().messages()
