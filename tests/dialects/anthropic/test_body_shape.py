"""Tools, calls and pictures in bodies of the Messages API, and text for them."""

from typing import Any

import pytest
from hypothesis import given, settings

from byok.chat import Message, Role
from byok.dialects.anthropic.body_shape import SHAPE
from tests.fakes.histories import PNG, histories
from tests.fakes.messages_api import (
    CALL,
    assistant,
    encode,
    result,
    said,
    thought,
    user,
)
from tests.fakes.strict_anthropic import broken_rules

POINT = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "a", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def test_tools_are_offered_again_without_losing_the_apis_own() -> None:
    body: dict[str, Any] = {"tools": [SEARCH, {**TOOL, **POINT}], "tool_choice": {}}
    (tool,) = SHAPE.tools(body)
    assert tool == {**TOOL, "description": ""}
    assert SHAPE.offer(body, [tool])["tools"] == [TOOL, SEARCH]
    assert SHAPE.offer(body, [])["tools"] == [SEARCH]
    assert SHAPE.offer({"tools": [TOOL], "tool_choice": {}}, []) == {}


def test_the_cache_point_stays_behind_the_last_tool() -> None:
    body = {"tools": [TOOL, {**TOOL, "name": "b", **POINT}], **POINT}
    kept = SHAPE.offer(body, SHAPE.tools(body)[:1])
    assert kept["tools"] == [{**TOOL, **POINT}]


def test_calls_become_records_in_the_users_words() -> None:
    body = encode(
        said(Role.SYSTEM, "Be brief."),
        user("?"),
        assistant(thought(), "Looking.", CALL),
        result(content="1 line", images=(PNG,)),
        user("And?"),
        cache=True,
    ).body
    assert SHAPE.has_calls(body)
    assert SHAPE.called(body) == {"view"}
    changed = SHAPE.calls_as_text(body)
    _, turn, answered = changed["messages"]
    assert turn["content"] == [{"type": "text", "text": "Looking."}]
    record, picture, words = answered["content"]
    assert record["text"].endswith('view {"path":"a"}\nresult:\n1 line')
    assert (picture["type"], words["text"]) == ("image", "And?")
    assert "cache_control" not in changed["system"][0]
    assert "cache_control" in changed["system"][1]
    assert not SHAPE.has_calls(changed)
    assert SHAPE.calls_as_text(changed) == changed


def test_records_have_a_system_prompt_and_merge_with_their_neighbours() -> None:
    body = encode(user("?"), assistant(CALL), result()).body
    changed = SHAPE.calls_as_text(body)
    assert [m["role"] for m in changed["messages"]] == ["user"]
    assert len(changed["system"]) == 1


@pytest.mark.parametrize(
    ("messages", "shows"),
    [
        ([user("?")], False),
        ([user("?", PNG)], True),
        ([user("?", PNG), assistant("Yes."), user("?")], False),
        ([user("?"), assistant(CALL), result(images=(PNG,))], True),
    ],
)
def test_pictures_are_found_and_become_sentences(
    messages: list[Message], shows: bool
) -> None:
    body = encode(*messages).body
    assert SHAPE.shows(body) is shows
    assert SHAPE.begins(body) is (len(messages) == 1)
    changed = SHAPE.pictures_as_text(body)
    assert not SHAPE.has_pictures(changed)
    assert (changed == body) is not SHAPE.has_pictures(body)
    assert SHAPE.pictures_as_text({}) == {}


@settings(max_examples=40)
@given(histories())
def test_changed_bodies_are_accepted(history: tuple[Message, ...]) -> None:
    body = encode(*history, cache=True).body
    for change in (SHAPE.calls_as_text, SHAPE.pictures_as_text):
        assert broken_rules(change(body)) == []
