"""Bodies of Messages: settings, tools, how much to reason."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, JsonAnswer, Sampling, ToolChoice, ToolUse
from byok.core.errors import BadRequest
from byok.protocols.v1.messages import decode_message

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
        ({"thinking": {"type": "adaptive"}}, ""),
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
        ({"max_tokens": "many"}, "max_tokens"),
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
