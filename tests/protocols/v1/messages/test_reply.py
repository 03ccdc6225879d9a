"""Answers of Messages: blocks in order, signatures, stop reasons."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, Origin, ProviderData, ToolCall
from byok.core.errors import BadRequest
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.wire.encrypted_content import read_encrypted
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.messages import MessageReply, write_usage

CHAT = ChatRequest((), client_parallel_tools=True)
HEAD = ReplyHead("1", "m", 7)
DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})
ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m", DATA),
    ThinkingDelta("so"),
    TextDelta("One "),
    TextDelta("two."),
    ToolCall("a", "view", '{"x":1}'),
    Usage(9, 5, 4, 1),
    Finish(FinishReason.TOOL_CALLS),
]


def written(*events: StreamEvent, thinks: bool) -> tuple[list[Any], MessageReply]:
    reply = MessageReply(CHAT, HEAD, shows_thinking=thinks)
    return [*(c for e in events for c in reply.feed(e)), *reply.flush()], reply


def short(event: dict[str, Any]) -> str:
    """Return the kind of an event, with that of its delta or block."""
    inner = event.get("delta") or event.get("content_block") or {}
    place = f"{event['index']} " if "index" in event else ""
    kind = event["type"].removeprefix("content_block_")
    return f"{place}{kind} {inner.get('type', '')}".strip()


def test_reply_events_come_in_order() -> None:
    events, _ = written(*ANSWER, thinks=True)
    assert [short(event) for event in events] == [
        "message_start",
        "0 start thinking",
        "0 delta thinking_delta",
        "0 delta thinking_delta",
        "0 delta signature_delta",
        "0 stop",
        "1 start thinking",
        "1 delta thinking_delta",
        "1 delta signature_delta",
        "1 stop",
        "2 start text",
        "2 delta text_delta",
        "2 delta text_delta",
        "2 stop",
        "3 start tool_use",
        "3 delta input_json_delta",
        "3 stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0]["message"]["content"] == []
    assert events[0]["message"]["usage"]["input_tokens"] == 0
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"] == write_usage(Usage(9, 5, 4, 1))


def test_reply_as_one_object() -> None:
    _, reply = written(*ANSWER, thinks=True)
    whole = reply.whole()
    thought, unsigned, said, call = whole["content"]
    assert (thought["thinking"], unsigned["thinking"]) == ("hm", "so")
    assert read_encrypted(thought["signature"]) == DATA
    assert read_encrypted(unsigned["signature"]) is not None
    assert said == {"type": "text", "text": "One two."}
    assert call == {"type": "tool_use", "id": "a", "name": "view", "input": {"x": 1}}
    assert (whole["id"], whole["model"], whole["stop_reason"]) == (
        "msg_1",
        "m",
        "tool_use",
    )
    assert whole["usage"] == {
        "input_tokens": 4,
        "output_tokens": 5,
        "cache_creation_input_tokens": 1,
        "cache_read_input_tokens": 4,
    }


def test_reply_shows_reasoning_only_to_those_who_ask() -> None:
    events, reply = written(*ANSWER, thinks=False)
    assert [block["type"] for block in reply.whole()["content"]] == ["text", "tool_use"]
    assert "thinking" not in str(events)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (FinishReason.STOP, "end_turn"),
        (FinishReason.LENGTH, "max_tokens"),
        (FinishReason.CONTENT_FILTER, "refusal"),
    ],
)
def test_reply_stop_reason(reason: FinishReason, told: str) -> None:
    _, reply = written(TextDelta("Hi."), Finish(reason), thinks=False)
    assert reply.whole()["stop_reason"] == told


def test_reply_of_a_failure_is_an_error_event() -> None:
    (_, error) = MessageReply(CHAT, HEAD).fail(BadRequest("No."))
    assert (error["type"], error["request_id"]) == ("error", "1")
