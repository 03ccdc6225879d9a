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
from byok.dialects.openai_chat.quirks import DEFAULT, QUIRKS, Quirks
from byok.dialects.openai_chat.request import encode_request

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
        pytest.param(user("a", "b"), {"role": "user", "content": "a\n\nb"}, id="user"),
        pytest.param(user(), {"role": "user", "content": ""}, id="user without words"),
        pytest.param(
            assistant("a"), {"role": "assistant", "content": "a"}, id="assistant"
        ),
        pytest.param(
            assistant(ThinkingPart("hm"), "a"),
            {"role": "assistant", "content": "a"},
            id="thoughts are not sent",
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
            assistant("a", CALL),
            {"role": "assistant", "content": "a", "tool_calls": [written(CALL)]},
            id="a call after words",
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
        pytest.param(
            user(ThinkingPart("hm"), ImagePart("image/gif", "R0lG")),
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/gif;base64,R0lG"},
                    }
                ],
            },
            id="a picture alone",
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


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        (Sampling(), {}),
        (Sampling(temperature=0.0), {"temperature": 0.0}),
        (Sampling(top_p=0.5, max_tokens=0), {"top_p": 0.5, "max_tokens": 0}),
    ],
    ids=["nothing", "zero", "two"],
)
def test_sampling_sends_only_given_parameters(
    sampling: Sampling, fields: dict[str, Any]
) -> None:
    plain = encode(user("x")).body
    assert encode(user("x"), sampling=sampling).body == {**plain, **fields}


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
        ("save-file_2", "save-file_2"),
        ("a" * 64, "a" * 64),
        ("a" * 65, r"a{55}_[0-9a-f]{8}"),
        ("mcp server.tool", r"mcp_server_tool_[0-9a-f]{8}"),
        ("ünï", r"n_[0-9a-f]{8}"),
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


def test_tool_name_that_equals_the_safe_name_of_another_stays_apart() -> None:
    (safe,) = encode(tools=(tool("a.b"),)).tool_names
    request = encode(tools=(tool(safe), tool("a.b")))
    first, second = (t["function"]["name"] for t in request.body["tools"])
    assert (first, request.tool_names[second]) == (safe, "a.b")
    assert first != second


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


IDS = st.lists(
    st.text(max_size=70) | st.text("ab1", min_size=9, max_size=9), unique=True
)


@pytest.mark.parametrize("vendor", ["default", "openai", "mistral", "anthropic"])
@settings(max_examples=60)
@given(ids=IDS)
def test_tool_call_ids_stay_distinct(vendor: str, ids: list[str]) -> None:
    quirks = QUIRKS.get(vendor, DEFAULT)
    calls = [ToolCall(call_id, "view", "{}") for call_id in ids]
    turn = [assistant(*calls), *(result(call) for call in calls)]
    asked, *told = messages(*turn, quirks=quirks)
    sent = [call["id"] for call in asked.get("tool_calls", ())]
    assert [message["tool_call_id"] for message in told] == sent
    assert len(set(sent)) == len(ids)
    for call_id in sent:
        if quirks.tool_ids.is_exact:
            assert re.fullmatch(r"[A-Za-z0-9]{9}", call_id)
        else:
            assert 0 < len(call_id) <= (quirks.tool_ids.longest or 70)
            assert call_id.isprintable()
        if quirks.tool_ids.longest:
            assert call_id.isascii()
        if quirks.tool_ids.is_plain:
            assert re.fullmatch(r"[A-Za-z0-9_-]+", call_id)
