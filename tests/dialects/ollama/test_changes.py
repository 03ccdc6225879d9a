"""Bodies for models that lack an ability: text for calls and pictures."""

import pytest

from byok.chat import (
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.base import Target
from byok.dialects.error_bodies import refusal_of
from byok.dialects.ollama.changes import (
    SHAPE,
    THINK_ROW,
    calls_as_text,
    pictures_as_text,
    shows_picture,
)
from byok.dialects.ollama.request import encode_request
from byok.dialects.remedies import RefusedRequest, Remedy
from tests.fakes.histories import PNG, user
from tests.fakes.strict_ollama import broken_rules

LOOK = Message(Role.USER, (TextPart("Look."), PNG))
CALL = Message(Role.ASSISTANT, (ToolCall("c", "view", '{"path": "a"}'),))
RESULT = Message(Role.TOOL, (ToolResult("c", "view", "x = 1"),))
VIEW = ToolDefinition("view", "", {"type": "object"})


def body(*messages: Message) -> dict[str, object]:
    return encode_request(ChatRequest(messages, (VIEW,)), Target("m")).body


def test_calls_become_records_of_the_user_and_pictures_stay() -> None:
    sent = calls_as_text(body(LOOK, CALL, RESULT, user("And now?")))
    assert broken_rules(sent) == []
    system, asked = sent["messages"]
    assert "[earlier tool call]" in system["content"]
    assert asked["images"] == [PNG.data]
    assert 'view {"path":"a"}\nresult:\nx = 1' in asked["content"]
    assert asked["content"].startswith("Look.\n\n")
    assert asked["content"].endswith("And now?")


def test_the_system_message_says_what_records_are() -> None:
    first = Message(Role.SYSTEM, (TextPart("Be exact."),))
    said = Message(Role.ASSISTANT, (TextPart("I look."), *CALL.parts))
    sent = calls_as_text(body(first, user("Go."), said, RESULT))
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert sent["messages"][0]["content"].startswith("Be exact.\n\nBlocks")
    assert "tool_calls" not in sent["messages"][2]


def test_a_history_without_calls_is_not_changed() -> None:
    plain = body(user("Hi?"))
    assert calls_as_text(plain) == plain


def test_a_sentence_stands_for_each_picture() -> None:
    sent = pictures_as_text(body(LOOK, user("Well?")))
    assert sent["messages"][0] == {
        "role": "user",
        "content": "Look.\n\n[a picture stood here; this model sees none]",
    }
    assert sent["messages"][1]["content"] == "Well?"
    assert pictures_as_text({}) == {}


def test_only_pictures_of_the_newest_turn_are_worth_a_notice() -> None:
    answer = Message(Role.ASSISTANT, (TextPart("A cat."),))
    assert shows_picture(body(LOOK))
    assert not shows_picture(body(LOOK, answer, user("Sure?")))
    assert SHAPE.has_pictures(body(LOOK, answer))
    assert not shows_picture(body(user("Hi?")))


@pytest.mark.parametrize(
    ("think", "changed"), [("high", True), (True, None), (False, None)]
)
def test_a_refused_level_of_thinking_becomes_a_switch_or_nothing(
    think: object, changed: object
) -> None:
    sent = {"model": "m", "think": think}
    error = refusal_of({"error": 'think value "high" is not supported'}, 400)
    found = THINK_ROW.find(RefusedRequest(sent, error))
    assert found is not None
    assert THINK_ROW.make(sent, Remedy("think", *found)).get("think") is changed


def test_a_switch_for_thinking_stays_where_a_level_was_refused() -> None:
    plain = {"model": "m", "think": False}
    assert THINK_ROW.make(plain, Remedy("think", "think", "switch")) == plain
    other = refusal_of({"error": "model not found"}, 404)
    assert THINK_ROW.find(RefusedRequest(plain, other)) is None
