"""Writing Chat Completions: messages, tools, names and ids, vendors' quirks."""

import dataclasses
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.families import family_facts
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.request import add_caching, effort_fields, encode_request
from byok.dialects.presets import DEFAULT, EffortForm, Quirks, quirks_of

HERE = Origin("openai_chat", "box", "m")
CALL = ToolCall("call_1", "view", '{"path": "a"}')


def said(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts))


def user(*parts: Part | str) -> Message:
    return said(Role.USER, *parts)


def assistant(*parts: Part | str) -> Message:
    return said(Role.ASSISTANT, *parts)


def result(call: ToolCall, content: str = "ok") -> Message:
    return said(Role.TOOL, ToolResult(call.id, call.name, content))


def encode(
    *messages: Message,
    quirks: Quirks = DEFAULT,
    extra: dict[str, Any] | None = None,
    **fields: Any,
) -> UpstreamRequest:
    target = Target("m", extra or {})
    return encode_request(ChatRequest(messages, **fields), target, quirks)


def messages(*parts: Message, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode(*parts, **options).body["messages"]
    return found


def written(call: ToolCall, call_id: str = "call_1") -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id, "type": "function", "function": function}


def test_request_of_a_plain_question_has_few_fields() -> None:
    request = encode(user("Hi?"))
    assert request.path == "chat/completions"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            said(Role.SYSTEM, "Be", "kind."),
            {"role": "system", "content": "Be\n\nkind."},
            id="system",
        ),
        pytest.param(
            assistant(ThinkingPart("hm"), "a", CALL, ThinkingPart("m"), "b", CALL),
            {
                "role": "assistant",
                "content": "ab",
                "tool_calls": [written(CALL), written(CALL)],
            },
            id="texts of one turn are one text",
        ),
        pytest.param(
            assistant(CALL),
            {"role": "assistant", "content": None, "tool_calls": [written(CALL)]},
            id="a call alone",
        ),
        pytest.param(
            result(CALL, "text"),
            {"role": "tool", "tool_call_id": "call_1", "content": "text"},
            id="a result",
        ),
        pytest.param(
            user("Look:", ImagePart("image/png", "AAAA"), "Well?"),
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,AAAA"},
                    },
                    {"type": "text", "text": "Well?"},
                ],
            },
            id="a picture",
        ),
    ],
)
def test_request_message_roles_and_content(
    message: Message, expected: dict[str, Any]
) -> None:
    assert messages(message) == [expected]


LONG_ID = "call_1__thought__" + "Q" * 300  # LiteLLM hides a signature in the id


@pytest.mark.parametrize("call_id", [LONG_ID, "functions.read:0", "id 1", "ünï/1"])
def test_tool_call_id_is_sent_verbatim_without_a_limit(call_id: str) -> None:
    call = dataclasses.replace(CALL, id=call_id)
    asked, told = messages(assistant(call), result(call))
    assert asked["tool_calls"][0]["id"] == call_id
    assert told["tool_call_id"] == call_id


@pytest.mark.parametrize("call_id", ["", "a\nb", "a\ud83d"])
def test_tool_call_id_that_is_unsafe_in_json_is_replaced(call_id: str) -> None:
    call = dataclasses.replace(CALL, id=call_id)
    asked, told = messages(assistant(call), result(call))
    sent = asked["tool_calls"][0]["id"]
    assert re.fullmatch(r"[0-9a-f]{64}", sent)
    assert told["tool_call_id"] == sent


# Quirks


def test_provider_data_is_sent_back_to_its_origin_only() -> None:
    data = {"extra_content": {"a": "CiQ=="}}
    for origin in (
        HERE,
        replace(HERE, dialect="gemini"),
        replace(HERE, upstream="other"),
        replace(HERE, model="n"),
    ):
        call = replace(CALL, provider_data=ProviderData(origin, data))
        chat, target = ChatRequest((assistant(call),)), Target("m", origin=HERE)
        sent = encode_request(chat, target, DEFAULT)
        (asked,) = sent.body["messages"]
        own = data if origin == HERE else {}
        assert asked["tool_calls"] == [{**written(CALL), **own}]


def test_extra_body_wins() -> None:
    extra = {"temperature": 1, "seed": 7}
    body = encode(sampling=Sampling(temperature=0.1), extra=extra).body
    assert body["temperature"] == 1
    assert body["seed"] == 7


# Tools

SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"path": {"type": "string"}},
}


def tool(name: str) -> ToolDefinition:
    return ToolDefinition(name, "Show a file.", SCHEMA)


def test_request_offers_tools() -> None:
    body = encode(user("x"), tools=(tool("view"),)).body
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "view",
                "description": "Show a file.",
                "parameters": {
                    "properties": {"path": {"type": "string"}},
                    "type": "object",
                },
            },
        }
    ]
    assert body["tool_choice"] == "auto"


@pytest.mark.parametrize(
    ("accepted", "client_can", "sent"),
    [(True, False, False), (True, True, None), (False, False, None)],
    ids=["the client cannot", "the client can", "the upstream knows no such field"],
)
def test_parallel_tool_calls_are_disabled_unless_the_client_can(
    accepted: bool, client_can: bool, sent: bool | None
) -> None:
    body = encode(
        tools=(tool("view"),),
        client_parallel_tools=client_can,
        quirks=Quirks(parallel_tool_calls=accepted),
    ).body
    assert body.get("parallel_tool_calls") is sent


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("view", "view"),
        ("a" * 65, r"a{55}_[0-9a-f]{8}"),
        ("mcp server.tool", r"mcp_server_tool_[0-9a-f]{8}"),
        ("工具", r"tool_[0-9a-f]{8}"),
        ("", r"tool_[0-9a-f]{8}"),
        ("view\n", r"view_[0-9a-f]{8}"),
    ],
)
@pytest.mark.case("B87")
def test_tool_name_is_made_safe_and_mapped_back(name: str, safe: str) -> None:
    request = encode(tools=(tool(name),))
    sent = request.body["tools"][0]["function"]["name"]
    assert re.fullmatch(safe, sent)
    assert request.tool_names[sent] == name


NAMES = st.lists(
    st.text(max_size=70) | st.text("ab_- é", max_size=4),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=100)
@given(NAMES, st.randoms(use_true_random=False))
@pytest.mark.case("B87")
def test_tool_names_stay_distinct(names: list[str], order: Any) -> None:
    first = encode(tools=tuple(tool(name) for name in names))
    # An offered name that looks like another one's replacement is no exception.
    names = [*first.tool_names, *(n for n in names if n not in first.tool_names)]
    order.shuffle(names)
    request = encode(
        assistant(*(ToolCall(f"i{n}", name, "{}") for n, name in enumerate(names))),
        tools=tuple(tool(name) for name in names),
    )
    offered = [t["function"]["name"] for t in request.body["tools"]]
    called = [
        c["function"]["name"]
        for message in request.body["messages"]
        for c in message.get("tool_calls", ())
    ]
    assert [request.tool_names[name] for name in offered] == names
    assert called == offered
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in offered)


# Efforts in the form of each vendor, and what is said where there is none


FIELD, OBJECT, SWITCH, BUDGET, TEMPLATE = (
    EffortForm.FIELD,
    EffortForm.OBJECT,
    EffortForm.SWITCH,
    EffortForm.BUDGET,
    EffortForm.TEMPLATE,
)


def fields(form: EffortForm, wanted: str, *efforts: str) -> dict[str, Any]:
    found, notice = effort_fields(wanted, ModelFacts("m", efforts=efforts), form)
    assert bool(found) or notice
    return found


@pytest.mark.parametrize(
    ("facts", "form"),
    [
        (ModelFacts("m", thinking=False), FIELD),
        (ModelFacts("m"), EffortForm.NONE),
    ],
)
def test_effort_without_a_setting_is_a_notice(
    facts: ModelFacts, form: EffortForm
) -> None:
    assert effort_fields("none", facts, form) == ({}, "")
    found, notice = effort_fields("high", facts, form)
    assert found == {}
    assert "`high`" in notice


@pytest.mark.parametrize(
    ("model", "vendor", "fields"),
    [
        ("glm-5.2", "zai", {"thinking": {"type": "disabled"}}),
        ("glm-5.1", "zai", {"thinking": {"type": "disabled"}}),
        ("deepseek-v4-pro", "deepseek", {"thinking": {"type": "disabled"}}),
        ("deepseek-v4-flash", "volcengine", {"thinking": {"type": "disabled"}}),
        ("deepseek/deepseek-v4-pro", "openrouter", {"reasoning": {"effort": "none"}}),
        ("deepseek-ai/DeepSeek-V4", "siliconflow", {"enable_thinking": False}),
        (
            "glm-5.3",  # it cannot be switched off
            "zai",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
        ),
    ],
)
def test_no_effort_switches_thinking_off(
    model: str, vendor: str, fields: dict[str, Any]
) -> None:
    form = quirks_of(vendor).effort
    assert effort_fields("none", family_facts(model), form) == (fields, "")


# Prompt caching: points, keys and headers, for those who want to be asked


POINT = {"type": "ephemeral"}


def body(*roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": role} for role in roles]}


def points(sent: dict[str, Any]) -> list[int]:
    """Return the places of the messages that end with a cache point."""
    return [
        place
        for place, message in enumerate(sent["messages"])
        if isinstance(message["content"], list)
        and message["content"][-1].get("cache_control") == POINT
    ]


def test_cache_control_of_claude_is_at_the_top_and_behind_the_system() -> None:
    sent = body("system", "user", "assistant", "user")
    target = Target("anthropic/claude-opus-5")
    assert add_caching(sent, ChatRequest(()), target, quirks_of("openrouter")) == {}
    assert sent["cache_control"] == POINT
    assert points(sent) == [0]


def test_a_long_cache_is_asked_for_in_each_vendors_words() -> None:
    sent = body("system", "user")
    claude = Target("anthropic/claude-opus-5", long_cache=True)
    add_caching(sent, ChatRequest(()), claude, quirks_of("openrouter"))
    assert sent["cache_control"] == {**POINT, "ttl": "1h"}
    sent = body("user")
    chat = ChatRequest((), conversation="c")
    add_caching(sent, chat, Target("gpt-5.6", long_cache=True), quirks_of("openai"))
    assert sent["prompt_cache_retention"] == "24h"


def test_cache_control_of_dashscope_is_behind_the_system_and_at_the_end() -> None:
    sent = body("system", "user", "assistant", "user")
    add_caching(sent, ChatRequest(()), Target("qwen3-max"), quirks_of("dashscope"))
    assert "cache_control" not in sent
    assert points(sent) == [0, 3]


@pytest.mark.parametrize("content", ["", None, []])
def test_cache_point_needs_content(content: Any) -> None:
    sent = {"messages": [{"role": "assistant", "content": content}]}
    add_caching(sent, ChatRequest(()), Target("q"), quirks_of("dashscope"))
    assert sent == {"messages": [{"role": "assistant", "content": content}]}


@pytest.mark.parametrize("vendor", ["openrouter", "openai", "xai"])
def test_caching_is_not_asked_for_where_the_user_wants_none(vendor: str) -> None:
    sent = body("system", "user")
    chat, target = ChatRequest((), conversation="c-1"), Target("claude", cache=False)
    assert add_caching(sent, chat, target, quirks_of(vendor)) == {}
    assert sent == body("system", "user")


def test_cache_key_is_a_field_or_a_header() -> None:
    chat = ChatRequest((), conversation="c-1")
    keyed, headed, plain = body("user"), body("user"), body("user")
    assert add_caching(keyed, chat, Target("m"), quirks_of("openai")) == {}
    assert keyed["prompt_cache_key"]
    headers = add_caching(headed, chat, Target("m"), quirks_of("xai"))
    assert headers == {"x-grok-conv-id": keyed["prompt_cache_key"]}
    assert add_caching(plain, chat, Target("m"), DEFAULT) == {}
    assert headed == plain == body("user")
