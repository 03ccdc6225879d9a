"""The envelope: limits, tools, choices, cache points; and bodies that judges accept."""

import itertools
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    JsonAnswer,
    Message,
    Part,
    Role,
    Sampling,
    ThinkingPart,
    ToolChoice,
    ToolDefinition,
    ToolUse,
)
from byok.dialects.anthropic.request import encode_request
from byok.dialects.base import Target
from byok.dialects.model_facts import ModelFacts, Replay
from tests.fakes.histories import PNG, histories
from tests.fakes.messages_api import (
    ADAPTIVE,
    BUDGET,
    CALL,
    HERE,
    REDACTED,
    THOUGHT,
    assistant,
    encode,
    result,
    said,
    thought,
    user,
)
from tests.fakes.sdk_types import check_type, sdk_type
from tests.fakes.strict_anthropic import broken_rules

TOOLS = (
    ToolDefinition("view file", "See.", {"properties": {"path": {"type": "string"}}}),
    ToolDefinition("list", "", {"type": "object"}),
)


def test_the_longest_answer_is_the_models_the_users_and_that_of_the_window() -> None:
    def most(wanted: int | None, facts: ModelFacts, text: str = "?") -> int:
        sent = encode(user(text), facts=facts, sampling=Sampling(max_tokens=wanted))
        return cast(int, sent.body["max_tokens"])

    assert most(None, ModelFacts("m")) == 8192
    assert most(20_000, ModelFacts("m")) == 20_000
    large = ModelFacts("m", max_output=64_000, window=200_000)
    assert most(None, large) == 64_000
    assert most(100, large) == 100
    assert most(100_000, large) == 64_000
    assert most(None, large, "x" * 450_000) == 50_000
    assert most(None, large, "x" * 900_000) == 4096


def test_tools_have_names_that_the_api_takes_and_one_call_if_the_client_wants() -> None:
    sent = encode(user("?"), tools=TOOLS, client_parallel_tools=False)
    first, second = sent.body["tools"]
    assert sent.tool_names[first["name"]] == "view file"
    assert first["input_schema"]["properties"] == {"path": {"type": "string"}}
    assert "description" not in second
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert sent.body["tool_choice"] == choice
    assert "tool_choice" not in encode(user("?"), tools=TOOLS).body


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        (ToolChoice(ToolUse.NONE), {"type": "none"}),
        (ToolChoice(ToolUse.REQUIRED), {"type": "any"}),
        (ToolChoice(ToolUse.REQUIRED, "list"), {"type": "tool", "name": "list"}),
    ],
)
def test_the_choice_of_tools_is_sent(choice: ToolChoice, sent: dict[str, Any]) -> None:
    body = encode(user("?"), tools=TOOLS, tool_choice=choice).body
    assert body["tool_choice"] == sent
    assert "tool_choice" not in encode(user("?"), tool_choice=choice).body


def test_stop_sequences_are_sent_without_blank_ones() -> None:
    body = encode(user("?"), sampling=Sampling(stop=("END", " "))).body
    assert body["stop_sequences"] == ["END"]
    assert "stop_sequences" not in encode(user("?")).body


def test_a_schema_holds_the_answer_beside_the_effort() -> None:
    facts = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=("low",))
    wanted = JsonAnswer({"type": "object", "properties": {}})
    sampling = Sampling(effort="low")
    body = encode(user("?"), facts=facts, json_answer=wanted, sampling=sampling).body
    assert body["output_config"]["effort"] == "low"
    assert body["output_config"]["format"]["schema"]["additionalProperties"] is False


def test_the_cache_is_asked_for_at_the_end_and_behind_the_system_prompt() -> None:
    system = said(Role.SYSTEM, "Be brief.")
    body = encode(system, user("?"), tools=TOOLS, cache=True).body
    assert body["cache_control"] == {"type": "ephemeral"}
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in body["tools"][-1]
    assert "cache_control" not in encode(system, user("?")).body


def test_the_users_fields_replace_any_other() -> None:
    body = encode(user("?"), extra={"max_tokens": 7, "top_k": 3}).body
    assert (body["max_tokens"], body["top_k"]) == (7, 3)


def test_what_the_facts_exclude_is_not_sent() -> None:
    facts = ModelFacts("m", images=False, most_tools=1, replay=Replay.NEVER)
    sent = encode(
        user("?", PNG), assistant(thought(), CALL), result(), tools=TOOLS, facts=facts
    )
    assert len(sent.body["tools"]) == 1
    (words,) = sent.body["messages"][0]["content"]
    assert "a picture stood here" in words["text"]
    assert sent.body["messages"][1]["content"][0]["type"] == "tool_use"
    first = encode(user("?", PNG), tools=TOOLS, facts=facts)
    assert len(first.notices) == 2


BLOCKS = [THOUGHT, REDACTED, {"type": "thinking", "thinking": "unsigned"}, None]
EFFORTS = ("low", "medium", "high", "xhigh", "max")
GRADED = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=EFFORTS)
CHOICES = [ToolChoice(), *(ToolChoice(use) for use in ToolUse), ToolChoice(
    ToolUse.REQUIRED, "list"
)]  # fmt: skip
SAMPLINGS = [
    Sampling(effort=effort, temperature=temperature, top_p=top_p, max_tokens=most)
    for effort, temperature, top_p, most in itertools.product(
        ("", "none", "low", "max"), (None, 0.3, 2.0), (None, 0.5), (None, 900, 30_000)
    )
]


@st.composite
def wishes(draw: st.DrawFn) -> dict[str, Any]:
    """Random tools, choices and settings of a request."""
    schema = {"type": "object", "properties": {"a": {"type": "object"}}}
    return {
        "tools": draw(st.sampled_from([(), TOOLS])),
        "client_parallel_tools": draw(st.booleans()),
        "silent": draw(st.booleans()),
        "sampling": draw(st.sampled_from(SAMPLINGS)),
        "tool_choice": draw(st.sampled_from(CHOICES)),
        "json_answer": draw(st.sampled_from([None, JsonAnswer(), JsonAnswer(schema)])),
    }


@st.composite
def talks(draw: st.DrawFn) -> tuple[Message, ...]:
    """Random conversations with reasoning, some of it not the model's own."""
    system = said(Role.SYSTEM, draw(st.sampled_from(["", "Be brief."])))
    return (system, *(_with_thoughts(draw, message) for message in draw(histories())))


def _with_thoughts(draw: st.DrawFn, message: Message) -> Message:
    if message.role is not Role.ASSISTANT or draw(st.booleans()):
        return message
    blocks = draw(st.lists(st.sampled_from(BLOCKS), max_size=2))
    thoughts: list[Part] = [thought(block) for block in blocks]
    rest = (part for part in message.parts if not isinstance(part, ThinkingPart))
    return Message(message.role, (*thoughts, *rest))


SDK = ("anthropic.types.message_create_params", "MessageCreateParamsStreaming")


@pytest.mark.slow
@settings(max_examples=200)
@given(
    talks(),
    st.lists(
        st.tuples(
            wishes(),
            st.sampled_from([ModelFacts("m"), ADAPTIVE, GRADED, BUDGET]),
            st.booleans(),
        ),
        min_size=5,
        max_size=5,
    ),
)
def test_every_body_is_one_that_the_api_and_its_sdk_accept(
    talk: tuple[Message, ...], asked: list[tuple[dict[str, Any], ModelFacts, bool]]
) -> None:
    for fields, facts, cache in asked:
        target = Target("m", {}, facts, HERE, cache)
        body = encode_request(ChatRequest(talk, **fields), target).body
        assert broken_rules(body) == []
        check_type(sdk_type(*SDK), body)
