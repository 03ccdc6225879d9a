"""Writing requests to Responses: what is sent, and that no rule is broken."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
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
from byok.dialects.base import Target, write_request
from byok.dialects.model_facts import ModelFacts, Replay
from byok.dialects.openai_responses.dialect import OpenAIResponses
from byok.dialects.openai_responses.request import assistant_items
from byok.dialects.remedies import Remedy
from tests.fakes.histories import PNG, histories, user
from tests.fakes.replay import recorded
from tests.fakes.responses_server import broken_rules
from tests.fakes.sdk_types import sdk_type

HERE = Origin("openai_responses", "box", "m")

VIEW = ToolDefinition("view", "Shows a file.", {"type": "object"})

REASONS = ModelFacts("m", thinking=True, sampling=False, efforts=("low", "high"))

PLAIN = ModelFacts("m", thinking=False, sampling=True)

ASKED = ChatRequest((Message(Role.SYSTEM, (TextPart("Be exact."),)), user("Hi?")))


def body_of(
    chat: ChatRequest, facts: ModelFacts = REASONS, **target: Any
) -> dict[str, Any]:
    asked = Target("m", facts=facts, origin=HERE, **target)
    return write_request(OpenAIResponses(), chat, asked)[1].body


def test_a_question_is_sent_and_nothing_is_stored() -> None:
    assert body_of(ASKED) == {
        "model": "m",
        "instructions": "Be exact.",
        "input": [{"type": "message", "role": "user", "content": "Hi?"}],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }


def test_a_later_system_message_keeps_its_place() -> None:
    late = Message(Role.SYSTEM, (TextPart("Hurry."),))
    body = body_of(replace(ASKED, messages=(user("Hi?"), late)))
    assert "instructions" not in body
    assert [item["role"] for item in body["input"]] == ["user", "system"]


def test_tools_are_flat_and_not_strict() -> None:
    chat = replace(ASKED, tools=(VIEW,), client_parallel_tools=True)
    body = body_of(chat)
    (tool,) = body["tools"]
    assert tool.pop("parameters")["type"] == "object"
    assert tool == {
        "type": "function",
        "name": "view",
        "description": "Shows a file.",
        "strict": False,
    }
    assert body["tool_choice"] == "auto"
    assert "parallel_tool_calls" not in body
    one = body_of(replace(chat, client_parallel_tools=False))
    assert one["parallel_tool_calls"] is False


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(ToolUse.NONE), "none"),
        (ToolChoice(ToolUse.REQUIRED), "required"),
        (ToolChoice(ToolUse.REQUIRED, "a view"), {"type": "function"}),
    ],
)
def test_tool_choices(choice: ToolChoice, sent: Any) -> None:
    tool = replace(VIEW, name="a view")
    body = body_of(replace(ASKED, tools=(tool,), tool_choice=choice))
    if isinstance(sent, dict):
        sent = {**sent, "name": body["tools"][0]["name"]}
    assert body["tool_choice"] == sent
    assert broken_rules(body) == []


@pytest.mark.parametrize(
    ("wanted", "facts", "reasoning"),
    [
        ("", REASONS, {"summary": "auto"}),
        ("medium", REASONS, {"effort": "low", "summary": "auto"}),
        ("max", ModelFacts("m"), {"effort": "max"}),
        ("", ModelFacts("m"), None),
        ("high", PLAIN, None),
    ],
)
def test_the_nearest_effort_is_sent(
    wanted: str, facts: ModelFacts, reasoning: Any
) -> None:
    chat = replace(ASKED, sampling=Sampling(effort=wanted))
    body = body_of(chat, facts)
    assert body.get("reasoning") == reasoning
    assert ("include" in body) == (facts is not PLAIN)


def test_limits_are_sent_where_the_model_takes_them() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=4)
    body = body_of(replace(ASKED, sampling=sampling), PLAIN)
    assert (body["temperature"], body["top_p"]) == (0.5, 0.9)
    assert body["max_output_tokens"] == 16  # the API refuses less
    assert "temperature" not in body_of(replace(ASKED, sampling=sampling))


def test_texts_that_stop_an_answer_are_told_not_to_be_sent() -> None:
    chat = replace(ASKED, sampling=Sampling(stop=("x",)))
    request = write_request(OpenAIResponses(), chat, Target("m"))[1]
    assert len(request.notices) == 1


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (JsonAnswer(), {"type": "json_object"}),
        (
            JsonAnswer({"type": "object"}, "the answer"),
            {"type": "json_schema", "schema": {"type": "object"}, "strict": False},
        ),
    ],
)
def test_answers_in_json(answer: JsonAnswer, sent: Any) -> None:
    body = body_of(replace(ASKED, json_answer=answer))
    assert broken_rules(body) == []
    found = body["text"]["format"]
    assert found.pop("name", "").startswith("the_answer" if "schema" in sent else "")
    assert found == sent


def test_a_conversation_has_a_key_for_the_cache() -> None:
    chat = replace(ASKED, conversation="c1")
    assert body_of(chat)["prompt_cache_key"]
    assert "prompt_cache_retention" not in body_of(chat)
    assert body_of(chat, long_cache=True)["prompt_cache_retention"] == "24h"
    assert "prompt_cache_key" not in body_of(chat, cache=False)


def test_results_are_texts_or_have_their_pictures() -> None:
    calls = (ToolCall("a", "view", "{}"), ToolCall("b" * 99, "view", "{}"))
    chat = ChatRequest(
        (
            user("Go."),
            Message(Role.ASSISTANT, calls),
            Message(Role.TOOL, (ToolResult("a", "view", "no", is_error=True),)),
            Message(Role.TOOL, (ToolResult("b" * 99, "view", "", images=(PNG,)),)),
        )
    )
    body = body_of(chat)
    text, picture = body["input"][-2:]
    assert text == {
        "type": "function_call_output",
        "call_id": "a",
        "output": "ERROR: no",
    }
    assert [part["type"] for part in picture["output"]] == ["input_text", "input_image"]
    assert broken_rules(body) == []


# What the API accepts
DATA: tuple[dict[str, Any], ...] = (
    {"item": {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}},
    {"phase": "commentary"},
    {"phase": "final_answer", "item": {"type": "reasoning", "summary": 7}},
    {"item": {"type": "reasoning", "content": [{"type": "t", "text": "a"}]}},
    {"item": {"type": "function_call"}, "phase": 7},
    {"item": "forged", "phase": "loud"},
    {"item": {"type": "reasoning", "encrypted_content": 7}},
    {},
)

ORIGINS = (HERE, HERE, replace(HERE, model="other"))

FACTS = (REASONS, PLAIN, ModelFacts("m"), ModelFacts("m", tools=False))

EACH = 10  # conversations for each history that hypothesis draws


def vary(history: tuple[Message, ...], chance: Random) -> ChatRequest:
    """Return a conversation in which reasoning came with all kinds of data."""
    messages: list[Message] = []
    for message in history:
        parts: list[Part] = []
        for part in message.parts:
            if message.role is Role.ASSISTANT and chance.random() < 0.5:
                data = ProviderData(chance.choice(ORIGINS), chance.choice(DATA))
                parts.append(ThinkingPart("Hm", data))
            parts.append(part)
        messages.append(Message(message.role, tuple(parts)))
    if chance.random() < 0.5:
        messages.insert(0, Message(Role.SYSTEM, (TextPart("Be exact."),)))
    return ChatRequest(
        tuple(messages),
        tools=chance.choice([(), (VIEW,)]),
        sampling=chance.choice([Sampling(), Sampling(0.5, 1.0, 9, "max")]),
        conversation=chance.choice(["", "c1"]),
        client_parallel_tools=chance.random() < 0.5,
    )


@pytest.mark.slow
def test_random_conversations_break_no_rule_and_fit_the_types_of_the_sdk() -> None:
    types = sdk_type(
        "openai.types.responses.response_create_params",
        "ResponseCreateParamsStreaming",
    )

    @settings(max_examples=10)
    @given(histories(), st.integers(0, 2**32))
    def encode_and_check(history: tuple[Message, ...], seed: int) -> None:
        chance = Random(seed)
        for _ in range(EACH):
            body = body_of(vary(history, chance), chance.choice(FACTS))
            assert broken_rules(body) == []
            # The types want the id of reasoning; the API does not where nothing is
            # stored.
            items = [
                {**item, "id": "rs"} if item["type"] == "reasoning" else item
                for item in body["input"]
            ]
            types.validate_python({**body, "input": items}, extra="forbid")

    encode_and_check()


# Refusals of what a body alone does not show: a model's name, its window, the key.
UNSEEN = ("model_not_found", "context_length", "not found", "API key")


def test_the_judge_agrees_with_recorded_requests(shared: Path) -> None:
    rows = [row for row in recorded(shared, "responses_stream") if row.get("request")]
    assert len(rows) > 100
    for row in rows:
        assert broken_rules(row["request"]) == [], row["id"]
    refused = [
        row
        for row in recorded(shared, "error")
        if "/responses" in str(row.get("endpoint"))
        and not any(
            words in (shared / "streams" / row["file"]).read_text("utf-8")
            for words in UNSEEN
        )
    ]
    assert refused
    for row in refused:
        assert broken_rules(row["request"]), row["id"]


SEALED: dict[str, Any] = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Plan."}],
    "encrypted_content": "g" * 2**20,
    "format": "x",
}

RAW: dict[str, Any] = {
    "type": "reasoning",
    "content": [{"type": "reasoning_text", "text": "Hm"}],
}

CALL = ToolCall("c1", "view", "{}")

SENT_CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "view",
    "arguments": "{}",
}


def thought(origin: Origin = HERE, **data: Any) -> ThinkingPart:
    return ThinkingPart("Plan.", ProviderData(origin, data))


def items(*parts: Part, replay: Replay | None = None) -> list[dict[str, Any]]:
    target = Target("m", facts=ModelFacts("m", replay=replay), origin=HERE)
    return assistant_items(parts, target)


def said(text: str, **fields: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **fields}


def test_reasoning_goes_back_unchanged_before_what_it_led_to() -> None:
    turn = (thought(item=SEALED), TextPart("So."), thought(item=SEALED), CALL)
    assert items(*turn) == [SEALED, said("So."), SEALED, SENT_CALL]


@pytest.mark.parametrize(
    "item",
    [
        {},
        {**SEALED, "type": "message"},
        {**SEALED, "summary": [7]},
        {**SEALED, "summary": [{"type": "summary_text"}]},
        {**SEALED, "content": "text"},
        {**SEALED, "encrypted_content": 7},
    ],
)
def test_damaged_reasoning_is_left_out(item: Any) -> None:
    assert items(thought(item=item, phase=7), CALL) == [SENT_CALL]


def test_fields_that_no_reasoning_has_are_left_out() -> None:
    more = {"id": "rs_1", "status": "completed", "role": "system", "signature": 7}
    forged = {**SEALED, **more, "summary": [{**SEALED["summary"][0], "role": "user"}]}
    assert items(thought(item=forged), CALL) == [SEALED, SENT_CALL]
    forged = {**RAW, **more, "content": [{**RAW["content"][0], "annotations": []}]}
    sent = items(thought(item=forged), CALL, replay=Replay.TOOL_TURNS)
    assert sent == [{**RAW, "summary": []}, SENT_CALL]


def test_reasoning_that_is_not_sealed_goes_back_where_models_want_it() -> None:
    assert items(thought(item=RAW), CALL) == [SENT_CALL]
    assert items(thought(item=RAW), CALL, replay=Replay.NEVER) == [SENT_CALL]
    sent = items(thought(item=RAW), CALL, replay=Replay.TOOL_TURNS)
    assert sent == [{**RAW, "summary": []}, SENT_CALL]


def test_phases_come_back_with_their_messages() -> None:
    turn = (
        thought(phase="commentary"), TextPart("I look."), CALL,
        thought(item=SEALED, phase="final_answer"), TextPart("So."), TextPart("Bye."),
    )  # fmt: skip
    assert items(*turn) == [
        said("I look.", phase="commentary"),
        SENT_CALL,
        SEALED,
        said("So.", phase="final_answer"),
        said("Bye."),
    ]


def test_a_phase_that_was_kept_beside_a_call_belongs_to_the_text_before_it() -> None:
    restored = thought(item=SEALED, phase="commentary")
    assert items(TextPart("I look."), restored, CALL) == [
        said("I look.", phase="commentary"),
        SEALED,
        SENT_CALL,
    ]
    assert items(restored, CALL) == [SEALED, SENT_CALL]


def test_vendors_differ_in_the_header_and_the_number_of_tools() -> None:
    openai, azure = OpenAIResponses.of("openai"), OpenAIResponses.of("azure")
    assert openai.headers("k")["Authorization"] == "Bearer k"
    assert azure.headers("k")["api-key"] == "k"
    unknown = ModelFacts("m")
    assert azure.presumed_remedies(unknown) == (Remedy("most tools", "128"),)
    assert OpenAIResponses.of("other").presumed_remedies(unknown) == ()
    assert openai.url("https://h/v1", "responses") == "https://h/v1/responses"
