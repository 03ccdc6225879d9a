"""Answers of Chat Completions, as chunks and as one object."""

from typing import Any

from byok.core.chat import ChatRequest, Origin, ProviderData, ToolCall
from byok.core.errors import BadRequest
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
from byok.core.wire.sse import DONE
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.chat_completions import CompletionReply, write_usage
from byok.protocols.v1.turns import write_freeform

CHAT = ChatRequest((), client_parallel_tools=True)
HEAD = ReplyHead("1", "m", 7)
DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})
ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m"),
    ThinkingDelta("", DATA),
    TextDelta("One "),
    TextDelta("two."),
    ToolCall("a", "view", '{"x":1}'),
    ToolCall("b", "patch", write_freeform("***")),
    Usage(9, 5, 4, 0, 2),
    Finish(FinishReason.TOOL_CALLS),
]
CALLS = [
    {
        "id": "a",
        "type": "function",
        "function": {"name": "view", "arguments": '{"x":1}'},
    },
    {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "***"}},
]


def written(
    *events: StreamEvent, counts: bool = False
) -> tuple[list[Any], CompletionReply]:
    reply = CompletionReply(CHAT, HEAD, freeform=frozenset({"patch"}), counts=counts)
    return [*(c for e in events for c in reply.feed(e)), *reply.flush()], reply


def test_reply_in_chunks() -> None:
    (*chunks, counted, done), _ = written(*ANSWER, counts=True)
    assert done is DONE
    assert counted["choices"] == []
    assert counted["usage"] == write_usage(Usage(9, 5, 4, 0, 2))
    for chunk in chunks:
        assert chunk["usage"] is None
        assert chunk["object"] == "chat.completion.chunk"
        assert (chunk["id"], chunk["created"], chunk["model"]) == ("chatcmpl-1", 7, "m")
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    details = deltas.pop(3)["reasoning_details"]
    assert read_encrypted(details[0]["data"]) == DATA
    assert details[0]["text"] == "hm"
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "h"},
        {"reasoning_content": "m"},
        {"content": "One "},
        {"content": "two."},
        {"tool_calls": [{"index": 0, **CALLS[0]}]},
        {"tool_calls": [{"index": 1, **CALLS[1]}]},
        {},
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_reply_as_one_object() -> None:
    _, reply = written(*ANSWER)
    whole = reply.whole()
    assert whole["object"] == "chat.completion"
    assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}
    (choice,) = whole["choices"]
    message = choice["message"]
    assert (message["content"], message["tool_calls"]) == ("One two.", CALLS)
    assert message["reasoning_content"] == "hm"
    assert len(message["reasoning_details"]) == 1


def test_reply_of_plain_text_has_nothing_else() -> None:
    chunks, reply = written(TextDelta("Hi."), Finish(FinishReason.LENGTH))
    assert len(chunks) == 4
    assert "usage" not in chunks[0]
    whole = reply.whole()
    assert whole["usage"] is None
    assert whole["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "Hi.", "refusal": None},
        "finish_reason": "length",
        "logprobs": None,
    }


def test_reply_of_encrypted_reasoning_alone() -> None:
    _, reply = written(ThinkingDelta("", DATA), ToolCall("a", "view", "{}"))
    message = reply.whole()["choices"][0]["message"]
    assert message["content"] is None
    assert "reasoning_content" not in message
    assert message["reasoning_details"][0]["text"] == ""


def test_reply_names_its_sources() -> None:
    chunks, reply = written(TextDelta("Hi."), Citation("https://a"))
    found = reply.whole()["choices"][0]["message"]["annotations"]
    assert chunks[-2]["choices"][0]["delta"] == {"annotations": found}
    assert found[0]["url_citation"]["title"] == "https://a"


def test_reply_of_a_failure_is_an_error_event() -> None:
    reply = CompletionReply(CHAT, HEAD)
    _, error = reply.fail(BadRequest("No."))
    assert error["error"]["message"] == "No."
