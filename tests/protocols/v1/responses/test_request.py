"""Bodies of Responses: settings, tools, what needs a store."""

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
from byok.core.wire.encrypted_content import write_encrypted
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.responses import add_items, decode_response
from byok.protocols.v1.turns import Turns

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
    "name", ["previous_response_id", "conversation", "prompt", "background", "store"]
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
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}


def read(given: Any) -> tuple[tuple[Message, ...], list[str]]:
    turns = Turns()
    left_out = add_items(turns, given)
    return turns.messages(), left_out


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
            {"role": "user", "content": [*said("input_text", "See"), PICTURE]},
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
        Message(Role.USER, (TextPart("See"), PNG)),
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
        ({"type": "item_reference", "id": "x"}, "stores no items"),
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
