"""Bodies of Chat Completions: settings, tools, what is refused or left out."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, JsonAnswer, Sampling, ToolChoice, ToolUse
from byok.core.errors import BadRequest
from byok.protocols.v1.chat_completions import decode_completion

HI = {"messages": [{"role": "user", "content": "Hi."}]}
TOOLS = [
    {"type": "function", "function": {"name": "view", "description": "See."}},
    {"type": "custom", "custom": {"name": "patch"}},
]


def chat(**fields: Any) -> ChatRequest:
    return decode_completion({**HI, **fields}).chat


def test_request_settings() -> None:
    asked = chat(
        temperature=0.5,
        top_p=1,
        max_tokens=7,
        reasoning_effort="low",
        stop="END",
        response_format={"type": "json_object"},
        prompt_cache_key="talk",
    )
    assert asked.sampling == Sampling(0.5, 1.0, 7, "low", ("END",))
    assert asked.json_answer == JsonAnswer()
    assert asked.cache_key == "talk"
    assert asked.question == asked.own_words == "Hi."
    assert not asked.agent
    assert asked.client_parallel_tools
    assert chat(max_tokens=7, max_completion_tokens=9).sampling.max_tokens == 9
    assert not chat(parallel_tool_calls=False).client_parallel_tools


def test_request_tools() -> None:
    asked = chat(tools=TOOLS, tool_choice="required")
    assert [tool.name for tool in asked.tools] == ["view", "patch"]
    assert asked.agent
    assert asked.tool_choice == ToolChoice(ToolUse.REQUIRED)


@pytest.mark.parametrize(
    ("choice", "tools", "chosen"),
    [
        (None, 2, ToolChoice()),
        ("none", 2, ToolChoice(ToolUse.NONE)),
        (
            {"type": "function", "function": {"name": "view"}},
            2,
            ToolChoice(ToolUse.REQUIRED, "view"),
        ),
        (
            {"type": "custom", "custom": {"name": "patch"}},
            2,
            ToolChoice(ToolUse.REQUIRED, "patch"),
        ),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": TOOLS[:1]},
            },
            1,
            ToolChoice(ToolUse.REQUIRED),
        ),
    ],
)
def test_request_choice_of_a_tool(choice: Any, tools: int, chosen: ToolChoice) -> None:
    asked = chat(tools=TOOLS, tool_choice=choice)
    assert (len(asked.tools), asked.tool_choice) == (tools, chosen)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"n": 2}, "n must be 1"),
        ({"functions": [{}]}, "functions"),
        ({"logprobs": True}, "logprobs"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"tools": [{"type": "function"}]}, "name of a tool"),
        ({"messages": []}, "nothing to answer"),
    ],
)
def test_request_is_refused_where_the_client_relies_on_it(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        chat(**fields)


def test_request_tells_what_is_left_out() -> None:
    asked = decode_completion(
        {**HI, "seed": 7, "tools": [{"type": "web_search"}], "stream": True}
    )
    assert asked.left_out == ("the tool 'web_search'", "seed")
    assert asked.stream
