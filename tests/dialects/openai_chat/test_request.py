"""Writing Chat Completions: messages, tools, names and ids, vendors' quirks."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.families import family_facts
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.openai_chat.request import add_caching, effort_fields
from byok.dialects.presets import DEFAULT, PRESETS, EffortForm, Quirks, quirks_of
from tests.fakes.messages_api import assistant, said, user

HERE = Origin("openai_chat", "box", "m")
CALL = ToolCall("call_1", "view", '{"path": "a"}')


def result(call: ToolCall, content: str = "ok") -> Message:
    return said(Role.TOOL, ToolResult(call.id, call.name, content))


def encode(
    *messages: Message,
    quirks: Quirks = DEFAULT,
    extra: dict[str, Any] | None = None,
    **fields: Any,
) -> UpstreamRequest:
    target = Target("m", extra or {})
    return write_request(OpenAIChat(quirks), ChatRequest(messages, **fields), target)[1]


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
    call = replace(CALL, id=call_id)
    asked, told = messages(assistant(call), result(call))
    assert asked["tool_calls"][0]["id"] == call_id
    assert told["tool_call_id"] == call_id


@pytest.mark.parametrize("call_id", ["", "a\nb", "a\ud83d"])
def test_tool_call_id_that_is_unsafe_in_json_is_replaced(call_id: str) -> None:
    call = replace(CALL, id=call_id)
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
        _, sent = write_request(OpenAIChat(), chat, target)
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


# Parameters of a request: what each vendor takes, and a notice for the rest


ASK = Message(Role.USER, (TextPart("Hi?"),))
TOLD = Message(Role.ASSISTANT, (TextPart("Yes."),))
TOOLS = (ToolDefinition("a tool", "", {}), ToolDefinition("b", "", {}))
OPTION_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


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
    assert len(request.notices) == 1
    none = sent(quirks_of(vendor), tools=TOOLS, tool_choice=ToolChoice(ToolUse.NONE))
    assert not none.body.keys() & {"tools", "tool_choice", "parallel_tool_calls"}
    assert none.notices == ()


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
            JsonAnswer(OPTION_SCHEMA, "fare"),
            {
                "type": "json_schema",
                "json_schema": {"name": "fare", "schema": OPTION_SCHEMA},
            },
            0,
        ),
        (quirks_of("deepseek"), JsonAnswer(OPTION_SCHEMA), {"type": "json_object"}, 1),
        (quirks_of("anthropic"), JsonAnswer(), None, 1),
    ],
)
def test_json_answer_is_asked_for_as_far_as_the_vendor_knows(
    quirks: Quirks, answer: JsonAnswer, form: Any, notices: int
) -> None:
    request = sent(quirks, json_answer=answer)
    assert request.body.get("response_format") == form
    assert len(request.notices) == notices
    # What no parameter says is said in words.
    asked = [m["content"] for m in request.body["messages"] if m["role"] == "system"]
    assert len(asked) == notices
    assert all((answer.schema is None) == ("properties" not in text) for text in asked)


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
    body = write_request(OpenAIChat.of(vendor), chat, target)[1].body
    flag = body.get("chat_template_kwargs", {}).get("preserve_thinking")
    assert (flag is True) == (path == "chat_template_kwargs")
    assert (body.get("preserve_thinking") is True) == (path == "preserve_thinking")
    if vendor in ("vllm", "llamacpp"):
        assert body["chat_template_kwargs"]["enable_thinking"] is True


# Earlier reasoning in a request: which turns, which form, and whose


REPLAY_CALL = ToolCall("call_1", "view", "{}")
SAID = TextPart("Yes.")
DETAILS = [{"type": "reasoning.encrypted", "data": "E", "index": 0, "id": "rs_1"}]
NEVER, TOOL_TURNS, EVERY_TURN = Replay


def thought(text: str, origin: Origin = HERE, **data: Any) -> ThinkingPart:
    return ThinkingPart(text, ProviderData(origin, data))


def send_back(
    *parts: Part,
    replay: Replay | None = None,
    empty: bool | None = None,
    quirks: Quirks = DEFAULT,
    model: str = "m",
) -> dict[str, Any]:
    facts = ModelFacts(model, replay=replay, empty_reasoning=empty)
    target = Target(model, facts=facts, origin=HERE)
    chat = ChatRequest((Message(Role.ASSISTANT, parts),))
    (message,) = write_request(OpenAIChat(quirks), chat, target)[1].body["messages"]
    return {k: v for k, v in message.items() if k not in ("role", "tool_calls")}


FORMS: dict[str, tuple[ThinkingPart, dict[str, Any]]] = {
    "reasoning_content": (
        thought("hm", field="reasoning_content"),
        {"reasoning_content": "hm"},
    ),
    "reasoning": (thought("hm", field="reasoning"), {"reasoning": "hm"}),
    "Copilot": (thought("hm", field="reasoning_text"), {"reasoning_text": "hm"}),
    "details": (
        thought("", field="reasoning", details=DETAILS),
        {"reasoning_details": DETAILS, "reasoning": ""},
    ),
    "tags": (
        thought("hm", tags=["<think>", "</think>\n\n"]),
        {"content": "<think>hm</think>\n\nYes."},
    ),
    "parts": (
        thought("hm", parts=True),
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "Yes."},
            ]
        },
    ),
    "extra content": (
        thought("", extra_content={"google": {"thought_signature": "S"}}),
        {"extra_content": {"google": {"thought_signature": "S"}}},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_reasoning_goes_back_in_the_form_in_which_it_came(form: str) -> None:
    part, fields = FORMS[form]
    plain = {"content": "Yes."}
    assert send_back(part, SAID, REPLAY_CALL, replay=TOOL_TURNS) == {
        **plain,
        **fields,
    }
    assert send_back(part, SAID, REPLAY_CALL, replay=EVERY_TURN) == {
        **plain,
        **fields,
    }
    assert send_back(part, SAID, replay=EVERY_TURN) == {**plain, **fields}
    assert send_back(part, SAID, REPLAY_CALL, replay=NEVER) == plain


def test_details_go_back_where_nothing_is_known_of_the_model() -> None:
    part = thought("hm", field="reasoning", details=DETAILS)
    assert send_back(part, SAID) == {"content": "Yes.", "reasoning_details": DETAILS}
    beside_calls = send_back(part, SAID, REPLAY_CALL)
    assert beside_calls == {"content": "Yes.", "reasoning_details": DETAILS}


def test_reasoning_of_a_field_goes_back_beside_calls_if_nothing_is_known() -> None:
    """Models that think between their calls would make them again without it."""
    for field in ("reasoning_content", "reasoning"):
        part = thought("hm", field=field)
        assert send_back(part, SAID, REPLAY_CALL) == {"content": "Yes.", field: "hm"}
        assert send_back(part, SAID) == {"content": "Yes."}
        assert send_back(part, SAID, REPLAY_CALL, replay=Replay.NEVER) == {
            "content": "Yes."
        }
    parts = send_back(thought("hm", parts=True), SAID, REPLAY_CALL)["content"]
    assert [part["type"] for part in parts] == ["thinking", "text"]
    tagged = thought("hm", tags=["<think>", "</think>"])
    assert send_back(tagged, SAID, REPLAY_CALL) == {"content": "Yes."}
    assert send_back(ThinkingPart("hm"), SAID, REPLAY_CALL) == {"content": "Yes."}


@pytest.mark.parametrize(
    ("quirks", "empty", "field"),
    [
        (DEFAULT, True, "reasoning_content"),
        (quirks_of("openrouter"), True, "reasoning"),
        (quirks_of("zai"), None, "reasoning_content"),
        (DEFAULT, None, ""),
    ],
    ids=["Kimi anywhere", "Kimi on OpenRouter", "Z.ai", "Claude anywhere"],
)
def test_reasoning_without_data_is_text_only_where_text_is_wanted(
    quirks: Quirks, empty: bool | None, field: str
) -> None:
    found = send_back(
        ThinkingPart("hm"),
        SAID,
        REPLAY_CALL,
        replay=TOOL_TURNS,
        empty=empty,
        quirks=quirks,
    )
    assert found == {"content": "Yes.", **({field: "hm"} if field else {})}


def test_empty_reasoning_is_sent_on_the_turns_that_want_some() -> None:
    empty = {"content": "Yes.", "reasoning_content": ""}
    assert send_back(SAID, REPLAY_CALL, replay=TOOL_TURNS, empty=True) == empty
    assert send_back(SAID, replay=TOOL_TURNS, empty=True) == {"content": "Yes."}
    assert send_back(SAID, replay=EVERY_TURN, empty=True) == empty
    deepseek = quirks_of("deepseek")
    assert send_back(SAID, quirks=deepseek) == empty
    assert send_back(SAID, quirks=deepseek, replay=NEVER) == {"content": "Yes."}


def test_gemini_behind_a_router_gets_the_documented_bypass() -> None:
    router = quirks_of("openrouter")
    found = send_back(REPLAY_CALL, quirks=router, model="google/gemini-3-pro")
    (entry,) = found["reasoning_details"]
    assert entry["data"] == "skip_thought_signature_validator"
    assert entry["id"] == "call_1"
    assert "reasoning_details" not in send_back(
        SAID, quirks=router, model="gemini-3-pro"
    )
    assert "reasoning_details" not in send_back(
        REPLAY_CALL, quirks=router, model="kimi-k2"
    )
    own = send_back(
        thought("", details=DETAILS),
        REPLAY_CALL,
        quirks=router,
        model="google/gemini-3-pro",
    )
    assert own["reasoning_details"] == DETAILS


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"field": "content"},
        {"details": "x"},
        {"details": [5, {}]},
        {"tags": ["<script>", "</script>"]},
        {"parts": 1},
    ],
)
def test_reasoning_with_forged_data_is_left_out(data: dict[str, Any]) -> None:
    part = thought("hm", **data)
    assert send_back(part, SAID, REPLAY_CALL, replay=EVERY_TURN) == {"content": "Yes."}


@pytest.mark.parametrize("data", [{"id": "x"}, {"extra_content": "x"}])
def test_call_with_forged_data_is_unchanged(data: dict[str, Any]) -> None:
    call = replace(REPLAY_CALL, provider_data=ProviderData(HERE, data))
    chat = ChatRequest((Message(Role.ASSISTANT, (call,)),))
    target = Target("m", origin=HERE)
    (message,) = write_request(OpenAIChat(), chat, target)[1].body["messages"]
    (written,) = message["tool_calls"]
    assert written["id"] == "call_1"
    assert "extra_content" not in written


# The table of vendors' oddities, and what each row does to a request


LONG = "functions.view:0-" + "x" * 40
QUIRK_SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "const": 5}},
    "additionalProperties": False,
}


def call(call_id: str, *thoughts: str) -> Message:
    parts = [ThinkingPart(t) for t in thoughts]
    return Message(Role.ASSISTANT, (*parts, ToolCall(call_id, "view", "{}")))


def answer_call(call_id: str) -> Message:
    return Message(Role.TOOL, (ToolResult(call_id, "view", "ok"),))


def ask(text: str) -> Message:
    return Message(Role.USER, (TextPart(text),))


CHAT = ChatRequest(
    (
        ask("Hi?"),
        call("a"),
        answer_call("a"),
        call(LONG, "hm"),
        answer_call(LONG),
        ask("Go."),
    ),
    tools=(ToolDefinition("view", "", QUIRK_SCHEMA),),
    sampling=Sampling(max_tokens=9),
)


def body_for(vendor: str) -> dict[str, Any]:
    """Write the same conversation as a vendor wants it; any other name is nobody."""
    return write_request(OpenAIChat.of(vendor), CHAT, Target("m"))[1].body


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
    assert body["tools"][0]["function"]["parameters"] == QUIRK_SCHEMA
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
        lambda n: body_for(n)["tools"][0]["function"]["parameters"] != QUIRK_SCHEMA
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
    body = write_request(OpenAIChat.of(vendor), CHAT, target)[1].body
    assert not body.keys() & {"n", "logprobs", "logit_bias", "user", "store"}
    assert "strict" not in body["tools"][0]["function"]
    for message in body["messages"]:
        assert "name" not in message
        assert isinstance(message["content"], str) or message["content"] is None
