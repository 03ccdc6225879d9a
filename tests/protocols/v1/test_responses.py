"""Responses as clients speak it: bodies read, answers written."""

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
from byok.core.errors import BadRequest, ContextLengthExceeded
from byok.core.events import (
    Citation,
    Finish,
    FinishReason,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.responses import ResponseReply, add_items, decode_response
from byok.protocols.v1.turns import Turns, write_freeform

TOOLS = [
    {"type": "function", "name": "view", "parameters": {}},
    {"type": "custom", "name": "patch"},
]


def chat(**fields: Any) -> ChatRequest:
    return decode_response({"input": "Hi.", **fields}).chat


def test_request_settings() -> None:
    asked = chat(
        instructions="Be brief.",
        temperature=0.5,
        top_p=1,
        max_output_tokens=7,
        reasoning={"effort": "low"},
        text={"format": {"type": "json_schema", "name": "x", "schema": {}}},
        prompt_cache_key="talk",
        parallel_tool_calls=False,
        store=False,
    )
    assert [m.role.value for m in asked.messages] == ["system", "user"]
    assert asked.sampling == Sampling(0.5, 1.0, 7, "low")
    assert asked.json_answer == JsonAnswer({}, "x")
    assert asked.cache_key == "talk"
    assert not asked.client_parallel_tools


@pytest.mark.parametrize(
    ("choice", "tools", "chosen"),
    [
        ("auto", 2, ToolChoice()),
        (
            {"type": "function", "name": "view"},
            2,
            ToolChoice(ToolUse.REQUIRED, "view"),
        ),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": TOOLS[1:]},
            1,
            ToolChoice(),
        ),
    ],
)
def test_request_choice_of_a_tool(choice: Any, tools: int, chosen: ToolChoice) -> None:
    asked = chat(tools=TOOLS, tool_choice=choice)
    assert (len(asked.tools), asked.tool_choice) == (tools, chosen)


@pytest.mark.parametrize(
    "name", ["previous_response_id", "conversation", "prompt", "background"]
)
def test_request_that_needs_a_store_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match=f"stores no responses: {name}"):
        chat(**{name: True})


def test_request_tells_what_is_left_out() -> None:
    body = {
        "input": [
            {"role": "user", "content": "Hi."},
            {"type": "web_search_call", "id": "x"},
        ],
        "tools": [{"type": "web_search"}],
        "max_tool_calls": 3,
        "stream": True,
    }
    asked = decode_response(body)
    assert asked.left_out == (
        "the tool 'web_search'",
        "the item 'web_search_call'",
        "max_tool_calls",
    )
    assert asked.stream


def test_request_fields_are_repeated_in_the_response() -> None:
    body = {"input": "Hi.", "reasoning": {"effort": "low"}, "tool_choice": {}}
    reply = decode_response({**body, "tool_choice": "none"}).reply(ReplyHead("1", "m"))
    whole = reply.whole()
    assert whole["tool_choice"] == "none"
    assert whole["reasoning"] == {"effort": "low", "summary": None}
    assert whole["parallel_tool_calls"] is True


def test_request_tools_in_a_namespace_come_back_in_it() -> None:
    space = {"type": "namespace", "name": "box", "tools": TOOLS}
    question = decode_response({"input": "Hi.", "tools": [space]})
    assert [tool.name for tool in question.chat.tools] == ["box__view", "box__patch"]
    reply = question.reply(ReplyHead("1", "m"))
    for tool in question.chat.tools:
        assert [*reply.feed(ToolCall("c", tool.name, '{"input":"x"}'))]
    view, patch = reply.whole()["output"]
    assert (view["namespace"], view["name"]) == ("box", "view")
    assert (patch["namespace"], patch["name"], patch["input"]) == ("box", "patch", "x")
    call = {**view, "arguments": "{}"}
    again = decode_response({"input": [call]}).chat.messages
    assert again[1].parts == (ToolCall("c", "box__view", "{}"),)


# Items of Responses: messages, calls, results, reasoning
DATA = ProviderData(Origin("openai_responses", "box", "m"), {"id": "rs_1"})

PNG = ImagePart("image/png", "AAAA")

FILE = {"type": "input_file", "file_data": "data:text/plain;base64,w6Q="}
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


def read(given: Any) -> tuple[tuple[Message, ...], list[str]]:
    turns = Turns()
    add_items(turns, given)
    return turns.messages(), turns.left_out


def said(kind: str, text: str) -> list[dict[str, str]]:
    return [{"type": kind, "text": text}]


def test_items_may_be_one_text() -> None:
    assert read("Hi.") == ((Message(Role.USER, (TextPart("Hi."),)),), [])


def test_items_of_a_turn_are_one_message() -> None:
    reasoning = {
        "type": "reasoning",
        "summary": said("summary_text", "hm"),
        "content": None,
        "encrypted_content": write_encrypted(DATA),
    }
    view = {"type": "function_call", "call_id": "1", "name": "view"}
    patch = {"type": "custom_tool_call", "call_id": "2", "name": "patch"}
    messages, left_out = read(
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [*said("input_text", "See"), PICTURE, FILE]},
            reasoning,
            {
                "type": "message",
                "role": "assistant",
                "content": said("output_text", "Ok."),
            },
            {**view, "arguments": '{"a":1}'},
            {**patch, "input": "***"},
            {"type": "local_shell_call", "id": "3", "action": {"command": ["ls"]}},
            {"type": "function_call_output", "call_id": "1", "output": "one"},
            {
                "type": "custom_tool_call_output",
                "call_id": "2",
                "output": [*said("input_text", "two"), PICTURE],
            },
            {"type": "local_shell_call_output", "id": "3", "output": "three"},
            {"type": "web_search_call", "id": "ws_1"},
            {**view, "call_id": "4"},
            {"type": "message", "role": "assistant", "content": [
                {"type": "refusal", "refusal": "No."},
            ]},
        ]
    )  # fmt: skip
    assert left_out == ["the item 'web_search_call'"]
    calls = (
        ToolCall("1", "view", '{"a":1}'),
        ToolCall("2", "patch", '{"input":"***"}'),
        ToolCall("3", "local_shell", '{"command":["ls"]}'),
    )
    assert messages[:3] == (
        Message(Role.SYSTEM, (TextPart("Be brief."),)),
        Message(Role.USER, (TextPart("See"), PNG, TextPart("\nä\n"))),
        Message(Role.ASSISTANT, (ThinkingPart("hm", DATA), TextPart("Ok."), *calls)),
    )
    results = [m.parts[0] for m in messages if m.role is Role.TOOL]
    assert results[:3] == [
        ToolResult("1", "view", "one"),
        ToolResult("2", "patch", "two\n[image 1 below]", images=(PNG,)),
        ToolResult("3", "local_shell", "three"),
    ]
    last = messages[-2].parts
    assert last == (ToolCall("4", "view", "{}"), TextPart("No."))


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"type": "item_reference", "id": "x"}, "does not remember"),
        ({"type": "function_call", "name": "view"}, "call_id must be"),
        ({"role": "user", "content": [{"type": "input_file"}]}, "input_file"),
        ({"role": "user", "content": [{**PICTURE, "file_id": "f"}]}, "input_image"),
    ],
)
def test_items_that_cannot_be_read_are_refused(item: Any, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        read([item])


def test_items_must_be_a_text_or_items() -> None:
    with pytest.raises(BadRequest, match="input must be"):
        read({"a": 1})


HEAD = ReplyHead("1", "m", 7)

ANSWER_DATA = ProviderData(Origin("gemini", "box", "m"), {"s": 1})

ANSWER: list[StreamEvent] = [
    ThinkingDelta("h"),
    ThinkingDelta("m", ANSWER_DATA),
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
    reply = ResponseReply(HEAD, freeform=frozenset({"patch"}))
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
    assert read_encrypted(thought["encrypted_content"]) == ANSWER_DATA
    assert said["content"][0]["text"] == "One two."
    assert (view["type"], view["arguments"]) == ("function_call", '{"x":1}')
    assert (patch["type"], patch["input"]) == ("custom_tool_call", "***")
    assert [item["status"] for item in (said, view, patch)] == ["completed"] * 3


def test_reply_of_encrypted_reasoning_has_no_summary() -> None:
    events, reply = written(ThinkingDelta("", ANSWER_DATA))
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


def test_reply_of_a_failure_is_an_error_and_a_failed_response() -> None:
    reply = ResponseReply(HEAD)
    (*_, error, failed) = reply.fail(ContextLengthExceeded("Too long.", hint="Less."))
    assert error == {
        "type": "error",
        "sequence_number": 2,
        "error": {
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
            "message": "Too long. Less.",
            "param": None,
        },
    }
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", 3)
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {
        "code": "context_length_exceeded",
        "message": "Too long. Less.",
    }
