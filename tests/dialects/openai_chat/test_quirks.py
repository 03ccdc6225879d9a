"""The table of vendors' oddities, and what each row does to a request."""

import re
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.base import Target, write_request
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.presets import PRESETS

LONG = "functions.view:0-" + "x" * 40
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "const": 5}},
    "additionalProperties": False,
}


def call(call_id: str, *thoughts: str) -> Message:
    parts = [ThinkingPart(t) for t in thoughts]
    return Message(Role.ASSISTANT, (*parts, ToolCall(call_id, "view", "{}")))


def result(call_id: str) -> Message:
    return Message(Role.TOOL, (ToolResult(call_id, "view", "ok"),))


def user(text: str) -> Message:
    return Message(Role.USER, (TextPart(text),))


CHAT = ChatRequest(
    (user("Hi?"), call("a"), result("a"), call(LONG, "hm"), result(LONG), user("Go.")),
    tools=(ToolDefinition("view", "", SCHEMA),),
    sampling=Sampling(max_tokens=9),
)


def body_for(vendor: str) -> dict[str, Any]:
    """Write the same conversation as a vendor wants it; any other name is nobody."""
    return OpenAIChat.of(vendor).encode(CHAT, Target("m")).body


def calls_for(vendor: str) -> list[dict[str, Any]]:
    return [m for m in body_for(vendor)["messages"] if "tool_calls" in m]


ALSO = {"bigmodel", "bigmodel_coding", "zai_coding", "moonshot_cn", "dashscope_cn"}


def those(accepted: Any) -> set[str]:
    """Return the presets for which something is true, each vendor once."""
    return {name for name in PRESETS.keys() - ALSO if accepted(name)}


def test_quirks_default_is_openais_own_way() -> None:
    body = body_for("vllm")
    assert body["max_tokens"] == 9
    assert body["stream_options"] == {"include_usage": True}
    assert body["tool_choice"] == "auto"
    assert body["parallel_tool_calls"] is False
    assert body["tools"][0]["function"]["parameters"] == SCHEMA
    first, second = calls_for("vllm")
    assert first["content"] is None
    assert "reasoning_content" not in second
    assert second["tool_calls"][0]["id"] == LONG
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("accepted", "vendors"),
    [
        (
            lambda name: "max_completion_tokens" in body_for(name),
            "openai azure xai groq minimax",
        ),
        (lambda name: "stream_options" not in body_for(name), "mistral"),
        (
            lambda name: "tool_choice" not in body_for(name),
            "ollama llamacpp zai minimax",
        ),
        (
            lambda name: "parallel_tool_calls" not in body_for(name),
            "ollama zai anthropic gemini minimax cerebras",
        ),
        (
            lambda name: calls_for(name)[0]["content"] == "",
            "dashscope siliconflow lmstudio deepseek zai llamacpp",
        ),
        (
            lambda name: calls_for(name)[1].get("reasoning_content") == "hm",
            "deepseek zai moonshot",
        ),
        (
            lambda name: calls_for(name)[0].get("reasoning_content") == "",
            "deepseek moonshot",
        ),
    ],
)
def test_quirk_is_that_of_some_vendors_alone(accepted: Any, vendors: str) -> None:
    assert those(accepted) == {*vendors.split()}


@pytest.mark.parametrize(
    ("vendor", "pattern"),
    [
        ("mistral", r"[A-Za-z0-9]{9}"),
        ("openai", r"[ -~]{1,40}"),
        ("azure", r"[ -~]{1,40}"),
        ("anthropic", r"[A-Za-z0-9_-]{1,64}"),
        ("moonshot", re.escape(LONG)),
    ],
)
def test_quirk_tool_call_ids_have_the_vendors_form(vendor: str, pattern: str) -> None:
    messages = body_for(vendor)["messages"]
    sent = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    assert [m["tool_call_id"] for m in messages if m["role"] == "tool"] == sent
    assert re.fullmatch(pattern, sent[1])


def test_quirk_gemini_gets_its_subset_of_json_schema() -> None:
    narrow = those(
        lambda n: body_for(n)["tools"][0]["function"]["parameters"] != SCHEMA
    )
    assert narrow == {"gemini"}
    (tool,) = body_for("gemini")["tools"]
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {"n": {"type": "integer", "description": "one of: [5]"}},
    }


def test_quirk_mistral_gets_an_assistant_between_tool_and_user() -> None:
    def alternates(vendor: str) -> bool:
        _, sent = write_request(OpenAIChat.of(vendor), CHAT, Target("m"))
        return bool(sent.body["messages"][-2]["role"] == "assistant")

    assert those(alternates) == {"mistral"}


@pytest.mark.parametrize("vendor", PRESETS)
def test_quirk_parameters_that_some_refuse_are_never_sent(vendor: str) -> None:
    target = Target("m", cache=False)
    body = OpenAIChat.of(vendor).encode(CHAT, target).body
    assert not body.keys() & {"n", "logprobs", "logit_bias", "user", "store"}
    assert "strict" not in body["tools"][0]["function"]
    for message in body["messages"]:
        assert "name" not in message
        assert isinstance(message["content"], str) or message["content"] is None
