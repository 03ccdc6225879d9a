"""Bodies of Responses: settings, tools, what needs a store."""

from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    JsonAnswer,
    Sampling,
    ToolCall,
    ToolChoice,
    ToolUse,
)
from byok.core.errors import BadRequest
from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.responses import decode_response

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


def test_request_choice_of_a_vendors_tool_is_refused() -> None:
    with pytest.raises(BadRequest, match="cannot pass on"):
        chat(tools=TOOLS, tool_choice={"type": "web_search"})


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
