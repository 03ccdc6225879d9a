"""Parameters of a request: what each vendor takes, and a notice for the rest."""

from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    JsonAnswer,
    Message,
    Role,
    Sampling,
    TextPart,
    ToolChoice,
    ToolDefinition,
    ToolUse,
)
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.families import family_facts
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.presets import DEFAULT, Quirks, quirks_of

ASK = Message(Role.USER, (TextPart("Hi?"),))
TOLD = Message(Role.ASSISTANT, (TextPart("Yes."),))
TOOLS = (ToolDefinition("a tool", "", {}), ToolDefinition("b", "", {}))
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def sent(
    quirks: Quirks = DEFAULT,
    *,
    model: dict[str, Any] | None = None,
    messages: tuple[Message, ...] = (ASK,),
    **fields: Any,
) -> UpstreamRequest:
    target = Target("m", facts=ModelFacts("m", **(model or {})))
    return write_request(OpenAIChat(quirks), ChatRequest(messages, **fields), target)[1]


def test_tool_choice_of_the_client_is_sent() -> None:
    def choice(use: ToolUse, name: str = "") -> Any:
        request = sent(tools=TOOLS, tool_choice=ToolChoice(use, name))
        return request.body["tool_choice"]

    assert choice(ToolUse.NONE) == "none"
    assert choice(ToolUse.REQUIRED) == "required"
    alias = next(a for a, n in sent(tools=TOOLS).tool_names.items() if n == "a tool")
    assert choice(ToolUse.REQUIRED, "a tool") == {
        "type": "function",
        "function": {"name": alias},
    }


@pytest.mark.parametrize("vendor", ["zai", "ollama", "deepseek", "moonshot"])
def test_tool_choice_that_is_refused_is_a_notice(vendor: str) -> None:
    request = sent(
        quirks_of(vendor), tools=TOOLS, tool_choice=ToolChoice(ToolUse.REQUIRED)
    )
    assert request.body.get("tool_choice") in (None, "auto")
    assert "told to call a tool" in request.notices[0]
    none = sent(quirks_of(vendor), tools=TOOLS, tool_choice=ToolChoice(ToolUse.NONE))
    assert not none.body.keys() & {"tools", "tool_choice", "parallel_tool_calls"}
    assert none.notices == ()


def test_sampling_that_is_refused_is_a_notice_in_the_first_turn() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, stop=("END",))
    facts = {"sampling": False}
    request = sent(model=facts, sampling=sampling)
    assert request.body["stop"] == ["END"]
    assert not request.body.keys() & {"temperature", "top_p"}
    assert "temperature" in request.notices[0]
    later = sent(model=facts, sampling=sampling, messages=(ASK, TOLD, ASK))
    assert later.notices == ()
    assert sent(model=facts, sampling=Sampling()).notices == ()


@pytest.mark.parametrize(
    ("vendor", "tools", "effort"),
    [
        ("openai", TOOLS, "none"),
        ("openai", (), "high"),
        ("openrouter", TOOLS, None),
    ],
)
def test_effort_of_a_model_of_another_api_is_none_with_tools(
    vendor: str, tools: tuple[ToolDefinition, ...], effort: str | None
) -> None:
    facts = {"dialect": "openai_responses", "efforts": ("none", "low", "high")}
    request = sent(
        quirks_of(vendor), model=facts, tools=tools, sampling=Sampling(effort="high")
    )
    assert request.body.get("reasoning_effort") == effort
    assert bool(request.notices) is (effort == "none")


def test_reasoning_of_earlier_turns_is_kept_by_zai() -> None:
    kept = {"type": "enabled", "clear_thinking": False}
    zai, off = quirks_of("zai"), Sampling(effort="none")
    thinks = {"thinking": True}
    request = sent(zai, model=thinks, tools=TOOLS)
    assert request.body["thinking"] == kept
    assert request.body["tool_stream"] is True
    switched = sent(zai, model=thinks, tools=TOOLS, sampling=off)
    assert switched.body["thinking"] == {**kept, "type": "disabled"}
    assert "thinking" not in sent(zai, tools=TOOLS).body
    assert "tool_stream" not in sent(zai, model=thinks).body


@pytest.mark.parametrize(
    ("quirks", "answer", "form", "notices"),
    [
        (DEFAULT, JsonAnswer(), {"type": "json_object"}, 0),
        (
            DEFAULT,
            JsonAnswer(SCHEMA, "fare"),
            {
                "type": "json_schema",
                "json_schema": {"name": "fare", "schema": SCHEMA},
            },
            0,
        ),
        (quirks_of("deepseek"), JsonAnswer(SCHEMA), {"type": "json_object"}, 1),
        (quirks_of("anthropic"), JsonAnswer(), None, 1),
    ],
)
def test_json_answer_is_asked_for_as_far_as_the_vendor_knows(
    quirks: Quirks, answer: JsonAnswer, form: Any, notices: int
) -> None:
    request = sent(quirks, json_answer=answer)
    assert request.body.get("response_format") == form
    assert len(request.notices) == notices


@pytest.mark.parametrize(
    ("vendor", "model", "path"),
    [
        ("vllm", "Qwen/Qwen3.6-35B-A3B", "chat_template_kwargs"),
        ("llamacpp", "qwen3.8-27b", "chat_template_kwargs"),
        ("dashscope", "qwen3.7-max", "preserve_thinking"),
        ("vllm", "Qwen/Qwen3-32B", ""),  # was not trained for it
        ("openrouter", "qwen/qwen3.6-plus", ""),
    ],
)
def test_qwen_keeps_the_reasoning_of_earlier_turns(
    vendor: str, model: str, path: str
) -> None:
    target = Target(model, facts=family_facts(model))
    chat = ChatRequest((ASK,), TOOLS, sampling=Sampling(effort="high"))
    body = encode_request(chat, target, quirks_of(vendor)).body
    flag = body.get("chat_template_kwargs", {}).get("preserve_thinking")
    assert (flag is True) == (path == "chat_template_kwargs")
    assert (body.get("preserve_thinking") is True) == (path == "preserve_thinking")
    if vendor in ("vllm", "llamacpp"):
        assert body["chat_template_kwargs"]["enable_thinking"] is True
