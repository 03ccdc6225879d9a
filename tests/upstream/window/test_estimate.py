"""Weights: bytes and not characters, whatever a message is made of."""

import pytest

from byok.core.chat import (
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.upstream.window.estimate import weigh, weigh_said, weigh_tools
from tests.fakes.histories import user

EMPTY = weigh(user(""))


def weight(part: Part) -> int:
    return weigh(Message(Role.USER, (part,))) - EMPTY


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("abc", 3), ("编译", 6), ("é", 2), ("😀", 4), ("\ud83d", 3)],
)
def test_estimate_of_a_text_is_its_bytes(text: str, expected: int) -> None:
    assert weight(TextPart(text)) == expected
    result = weight(ToolResult("id", "view", text)) - weight(ToolResult("id", "v", ""))
    assert result == expected
    call = weight(ToolCall("id", "view", text)) - weight(ToolCall("id", "view", ""))
    assert call == expected


@pytest.mark.parametrize(
    ("rest", "expected"),
    [(TextPart("Yes."), 0), (ToolCall("i", "view", "{}"), 27)],
    ids=["beside text", "beside a call"],
)
def test_estimate_counts_thinking_where_it_is_sent(rest: Part, expected: int) -> None:
    thinking = Message(Role.ASSISTANT, (ThinkingPart("Hm." * 9), rest))
    silent = Message(Role.ASSISTANT, (rest,))
    assert weigh_said(thinking) == weigh_said(silent) == weigh(silent)
    assert weigh(thinking) == weigh(silent) + expected


def test_estimate_counts_the_schemas_of_tools() -> None:
    small = ToolDefinition("view", "Shows.", {"type": "object"})
    large = ToolDefinition("view", "Shows.", {"type": "object", "title": "x" * 500})
    assert weigh_tools([]) == 0
    assert 500 < weigh_tools([large]) - weigh_tools([small]) < 520
    assert weigh_tools([small, small]) == 2 * weigh_tools([small])
