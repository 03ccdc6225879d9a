"""Anthropic's Messages as clients speak it: bodies read, answers written."""

from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolUse,
)
from byok.core.errors import BadRequest
from byok.core.events import (
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.messages import (
    MessageReply,
    add_message,
    decode_message,
    write_usage,
)
from byok.protocols.v1.turns import Turns

HI = {"messages": [{"role": "user", "content": "Hi."}]}

TOOLS = [{"name": "view", "input_schema": {"type": "object"}, "type": "custom"}]


def chat(**fields: Any) -> ChatRequest:
    return decode_message({**HI, **fields}).chat


def test_request_settings() -> None:
    asked = chat(
        system="Be brief.",
        temperature=0.5,
        top_p=1,
        max_tokens=7,
        stop_sequences=["END"],
        metadata={"user_id": "me"},
    )
    assert [m.role.value for m in asked.messages] == ["system", "user"]
    assert asked.sampling == Sampling(0.5, 1.0, 7, "", ("END",))
    assert asked.cache_key == "me"
    assert asked.client_parallel_tools


@pytest.mark.parametrize(
    ("fields", "effort"),
    [
        ({}, ""),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10_000}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 32_000}}, "high"),
        ({"output_config": {"effort": "max"}}, "max"),
    ],
)
def test_request_effort(fields: dict[str, Any], effort: str) -> None:
    assert chat(**fields).sampling.effort == effort


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [
        (None, ToolChoice()),
        ({"type": "auto"}, ToolChoice()),
        ({"type": "any"}, ToolChoice(ToolUse.REQUIRED)),
        ({"type": "none"}, ToolChoice(ToolUse.NONE)),
        ({"type": "tool", "name": "view"}, ToolChoice(ToolUse.REQUIRED, "view")),
    ],
)
def test_request_choice_of_a_tool(choice: Any, chosen: ToolChoice) -> None:
    assert chat(tools=TOOLS, tool_choice=choice).tool_choice == chosen


def test_request_of_one_call_a_turn() -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert not chat(tools=TOOLS, tool_choice=choice).client_parallel_tools


@pytest.mark.parametrize(
    "fields",
    [
        {"output_config": {"format": {"type": "json_schema", "schema": {"a": 1}}}},
        {"output_format": {"type": "json_schema", "schema": {"a": 1}}},
    ],
)
def test_request_form_of_the_answer(fields: dict[str, Any]) -> None:
    assert chat(**fields).json_answer == JsonAnswer({"a": 1})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tool_choice": {"type": "some"}}, "tool_choice"),
        ({"output_format": {"type": "xml"}}, "json_schema"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"container": "x"}, "container"),
        ({"messages": []}, "nothing to answer"),
    ],
)
def test_request_is_refused_where_the_client_relies_on_it(
    fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadRequest, match=told):
        chat(**fields)


def test_request_tells_what_is_left_out() -> None:
    tool = {"type": "web_search_20250305", "name": "web_search"}
    asked = decode_message({**HI, "tools": [tool], "top_k": 5, "stream": True})
    assert asked.left_out == ("the tool 'web_search_20250305'", "top_k")
    assert asked.stream


# Blocks of Messages: texts, pictures, calls, results, reasoning
DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "s"})

PNG = ImagePart("image/png", "AAAA")

SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}

PICTURE = {"type": "image", "source": SOURCE}


def read(*messages: dict[str, Any]) -> tuple[tuple[Message, ...], list[str]]:
    turns = Turns()
    for message in messages:
        add_message(turns, message)
    return turns.messages(), turns.left_out


def say(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_blocks_of_a_conversation() -> None:
    sealed = write_encrypted(DATA)
    url = {"type": "url", "url": "data:image/png;base64,AAAA"}
    messages, left_out = read(
        {"role": "user", "content": [say("See"), PICTURE, {**PICTURE, "source": url}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": sealed},
                {"type": "redacted_thinking", "data": "of Anthropic"},
                say("Ok."),
                {"type": "server_tool_use", "id": "s"},
                {"type": "tool_use", "id": "1", "name": "view", "input": {"a": 1}},
                {"type": "tool_use", "id": "2", "name": "view"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "2", "content": "two"},
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [say("one"), PICTURE],
                    "is_error": True,
                },
                say("Go on."),
            ],
        },
        {"role": "assistant", "content": "Done."},
        {"role": "system", "content": "Be brief."},
    )
    assert left_out == ["the block 'server_tool_use'"]
    assert messages == (
        Message(Role.USER, (TextPart("See"), PNG, PNG)),
        Message(
            Role.ASSISTANT,
            (
                ThinkingPart("hm", DATA),
                ThinkingPart(""),
                TextPart("Ok."),
                ToolCall("1", "view", '{"a":1}'),
                ToolCall("2", "view", "{}"),
            ),
        ),
        Message(
            Role.TOOL,
            (
                ToolResult(
                    "1", "view", "one\n[image 1 below]", is_error=True, images=(PNG,)
                ),
            ),
        ),
        Message(Role.TOOL, (ToolResult("2", "view", "two"),)),
        Message(Role.USER, (TextPart("Go on."),)),
        Message(Role.ASSISTANT, (TextPart("Done."),)),
        Message(Role.USER, (TextPart("[instructions]\nBe brief.", is_aside=True),)),
    )


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            {
                "type": "document",
                "title": "T",
                "source": {"type": "text", "data": "words"},
            },
            "\nT\nwords\n",
        ),
        (
            {
                "type": "document",
                "source": {
                    "type": "base64",
                    "media_type": "text/plain",
                    "data": "d29yZHM=",
                },
            },
            "\nwords\n",
        ),
        (
            {
                "type": "search_result",
                "title": "T",
                "source": "S",
                "content": [say("words")],
            },
            "\nT\nS\nwords\n",
        ),
        ({"type": "tool_reference", "tool_name": "view"}, "view"),
    ],
)
def test_blocks_that_are_texts(block: dict[str, Any], text: str) -> None:
    messages, _ = read({"role": "user", "content": [block]})
    assert messages[0].parts == (TextPart(text),)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "tool", "content": "x"}, "role must be"),
        ({"role": "user", "content": [{"type": "container_upload"}]}, "container"),
        (
            {
                "role": "user",
                "content": [{"type": "document", "source": {"type": "url"}}],
            },
            "document 'url'",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "file"}}],
            },
            "source 'file'",
        ),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, "id of a tool_use"),
    ],
)
def test_blocks_that_cannot_be_read_are_refused(
    message: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadRequest, match=told):
        read(message)


HEAD = ReplyHead("1", "m", 7)

ANSWER_DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})

ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m", ANSWER_DATA),
    ThinkingDelta("so"),
    TextDelta("One "),
    TextDelta("two."),
    ToolCall("a", "view", '{"x":1}'),
    Usage(9, 5, 4, 1),
    Finish(FinishReason.TOOL_CALLS),
]


def written(*events: StreamEvent, thinks: bool) -> tuple[list[Any], MessageReply]:
    reply = MessageReply(HEAD, shows_thinking=thinks)
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
    assert read_encrypted(thought["signature"]) == ANSWER_DATA
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
    (_, error) = MessageReply(HEAD).fail(BadRequest("No."))
    assert (error["type"], error["request_id"]) == ("error", "1")
