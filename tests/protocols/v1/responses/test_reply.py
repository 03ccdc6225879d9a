"""Answers of Responses: the events, their order, and the whole response."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, Origin, ProviderData, ToolCall
from byok.core.errors import ContextLengthExceeded
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.wire.encrypted_content import read_encrypted
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.responses import ResponseReply
from byok.protocols.v1.turns import write_freeform

CHAT = ChatRequest((), client_parallel_tools=True)
HEAD = ReplyHead("1", "m", 7)
DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})
ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m", DATA),
    TextDelta("One "),
    TextDelta("two."),
    ToolCall("a", "view", '{"x":1}'),
    ToolCall("b", "patch", write_freeform("***")),
    Usage(9, 5),
    Finish(FinishReason.TOOL_CALLS),
]
BLOCKS = """
    created in_progress
    output_item.added reasoning_summary_part.added
    reasoning_summary_text.delta reasoning_summary_text.delta
    reasoning_summary_text.done reasoning_summary_part.done output_item.done
    output_item.added content_part.added output_text.delta output_text.delta
    output_text.done content_part.done output_item.done
    output_item.added function_call_arguments.delta function_call_arguments.done
    output_item.done
    output_item.added custom_tool_call_input.delta custom_tool_call_input.done
    output_item.done
    completed
"""


def written(*events: StreamEvent) -> tuple[list[Any], ResponseReply]:
    reply = ResponseReply(CHAT, HEAD, freeform=frozenset({"patch"}))
    return [*(c for e in events for c in reply.feed(e)), *reply.flush()], reply


def test_reply_events_come_in_order() -> None:
    events, reply = written(*ANSWER)
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds == BLOCKS.split()
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    places = [event["output_index"] for event in events if "output_index" in event]
    assert places == sorted(places)
    for event in events:
        if "item_id" in event:
            place = event["output_index"]
            assert event["item_id"] == reply.whole()["output"][place]["id"]
    assert events[-1]["response"] == reply.whole()
    assert events[0]["response"]["usage"] is None


def test_reply_items_are_whole_at_the_end() -> None:
    _, reply = written(*ANSWER)
    whole = reply.whole()
    assert (whole["status"], whole["id"], whole["created_at"]) == (
        "completed",
        "resp_1",
        7,
    )
    assert whole["usage"]["total_tokens"] == 14
    thought, said, view, patch = whole["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert read_encrypted(thought["encrypted_content"]) == DATA
    assert said["content"][0]["text"] == "One two."
    assert (view["type"], view["arguments"]) == ("function_call", '{"x":1}')
    assert (patch["type"], patch["input"]) == ("custom_tool_call", "***")
    assert [item["status"] for item in (said, view, patch)] == ["completed"] * 3


def test_reply_of_encrypted_reasoning_has_no_summary() -> None:
    events, reply = written(ThinkingDelta("", DATA))
    assert [e["type"].rpartition(".")[2] for e in events[2:4]] == ["added", "done"]
    assert reply.whole()["output"][0]["summary"] == []
    assert events[2]["item"]["id"] == events[3]["item"]["id"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (FinishReason.LENGTH, "max_output_tokens"),
        (FinishReason.CONTENT_FILTER, "content_filter"),
    ],
)
def test_reply_that_was_cut_is_incomplete(reason: FinishReason, told: str) -> None:
    events, _ = written(TextDelta("Hi."), Finish(reason))
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": told}


def test_reply_names_its_sources() -> None:
    events, reply = written(TextDelta("Hi."), Citation("https://a", "A"))
    (part,) = reply.whole()["output"][0]["content"]
    assert part["annotations"] == [
        {
            "type": "url_citation",
            "url": "https://a",
            "title": "A",
            "start_index": 0,
            "end_index": 0,
        }
    ]
    assert events[-2]["item"]["content"] == [part]


def test_reply_of_a_failure_is_a_failed_response() -> None:
    reply = ResponseReply(CHAT, HEAD)
    (*_, failed) = reply.fail(ContextLengthExceeded("Too long.", hint="Less."))
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {
        "code": "context_length_exceeded",
        "message": "Too long. Less.",
    }
