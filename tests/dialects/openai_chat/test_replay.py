"""Earlier reasoning in a request: which turns, which form, and whose."""

from dataclasses import replace
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from byok.dialects.base import Target
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.presets import DEFAULT, Quirks, quirks_of

HERE = Origin("openai_chat", "box", "m")
CALL = ToolCall("call_1", "view", "{}")
SAID = TextPart("Yes.")
DETAILS = [{"type": "reasoning.encrypted", "data": "E", "index": 0, "id": "rs_1"}]
NEVER, TOOL_TURNS, EVERY_TURN = Replay


def thought(text: str, origin: Origin = HERE, **data: Any) -> ThinkingPart:
    return ThinkingPart(text, ProviderData(origin, data))


def sent(
    *parts: Part,
    replay: Replay | None = None,
    empty: bool | None = None,
    quirks: Quirks = DEFAULT,
    model: str = "m",
) -> dict[str, Any]:
    facts = ModelFacts(model, replay=replay, empty_reasoning=empty)
    target = Target(model, facts=facts, origin=HERE)
    chat = ChatRequest((Message(Role.ASSISTANT, parts),))
    (message,) = encode_request(chat, target, quirks).body["messages"]
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
    assert sent(part, SAID, CALL, replay=TOOL_TURNS) == {**plain, **fields}
    assert sent(part, SAID, CALL, replay=EVERY_TURN) == {**plain, **fields}
    assert sent(part, SAID, replay=EVERY_TURN) == {**plain, **fields}
    assert sent(part, SAID, CALL, replay=NEVER) == plain


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "origin",
    [
        replace(HERE, dialect="anthropic"),
        replace(HERE, upstream="other"),
        replace(HERE, model="other"),
    ],
)
def test_reasoning_of_another_origin_never_goes_back(form: str, origin: Origin) -> None:
    part, _ = FORMS[form]
    data = part.provider_data
    assert data
    foreign = replace(part, provider_data=replace(data, origin=origin))
    assert sent(foreign, SAID, CALL, replay=EVERY_TURN) == {"content": "Yes."}
    empty = sent(foreign, SAID, replay=EVERY_TURN, empty=True)
    assert empty == {"content": "Yes.", "reasoning_content": ""}


def test_details_go_back_where_nothing_is_known_of_the_model() -> None:
    part = thought("hm", field="reasoning", details=DETAILS)
    assert sent(part, SAID) == {"content": "Yes.", "reasoning_details": DETAILS}
    beside_calls = sent(part, SAID, CALL)
    assert beside_calls == {"content": "Yes.", "reasoning_details": DETAILS}


def test_reasoning_of_a_field_goes_back_beside_calls_if_nothing_is_known() -> None:
    """Models that think between their calls would make them again without it."""
    for field in ("reasoning_content", "reasoning"):
        part = thought("hm", field=field)
        assert sent(part, SAID, CALL) == {"content": "Yes.", field: "hm"}
        assert sent(part, SAID) == {"content": "Yes."}
        assert sent(part, SAID, CALL, replay=Replay.NEVER) == {"content": "Yes."}
    parts = sent(thought("hm", parts=True), SAID, CALL)["content"]
    assert [part["type"] for part in parts] == ["thinking", "text"]
    tagged = thought("hm", tags=["<think>", "</think>"])
    assert sent(tagged, SAID, CALL) == {"content": "Yes."}
    assert sent(ThinkingPart("hm"), SAID, CALL) == {"content": "Yes."}


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
    found = sent(
        ThinkingPart("hm"), SAID, CALL, replay=TOOL_TURNS, empty=empty, quirks=quirks
    )
    assert found == {"content": "Yes.", **({field: "hm"} if field else {})}


def test_empty_reasoning_is_sent_on_the_turns_that_want_some() -> None:
    empty = {"content": "Yes.", "reasoning_content": ""}
    assert sent(SAID, CALL, replay=TOOL_TURNS, empty=True) == empty
    assert sent(SAID, replay=TOOL_TURNS, empty=True) == {"content": "Yes."}
    assert sent(SAID, replay=EVERY_TURN, empty=True) == empty
    deepseek = quirks_of("deepseek")
    assert sent(SAID, quirks=deepseek) == empty
    assert sent(SAID, quirks=deepseek, replay=NEVER) == {"content": "Yes."}


def test_gemini_behind_a_router_gets_the_documented_bypass() -> None:
    router = quirks_of("openrouter")
    found = sent(CALL, quirks=router, model="google/gemini-3-pro")
    (entry,) = found["reasoning_details"]
    assert entry["data"] == "skip_thought_signature_validator"
    assert entry["id"] == "call_1"
    assert "reasoning_details" not in sent(SAID, quirks=router, model="gemini-3-pro")
    assert "reasoning_details" not in sent(CALL, quirks=router, model="kimi-k2")
    own = sent(
        thought("", details=DETAILS), CALL, quirks=router, model="google/gemini-3-pro"
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
    assert sent(part, SAID, CALL, replay=EVERY_TURN) == {"content": "Yes."}


@pytest.mark.parametrize("data", [{"id": "x"}, {"extra_content": "x"}])
def test_call_with_forged_data_is_unchanged(data: dict[str, Any]) -> None:
    call = replace(CALL, provider_data=ProviderData(HERE, data))
    chat = ChatRequest((Message(Role.ASSISTANT, (call,)),))
    target = Target("m", origin=HERE)
    (message,) = encode_request(chat, target, DEFAULT).body["messages"]
    (written,) = message["tool_calls"]
    assert written["id"] == "call_1"
    assert "extra_content" not in written
