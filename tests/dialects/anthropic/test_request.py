"""The envelope: limits, tools, choices, cache points; and bodies that judges accept."""

import itertools
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.chat import (
    ChatRequest,
    JsonAnswer,
    Message,
    Origin,
    Part,
    Role,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolUse,
)
from byok.dialects.anthropic.dialect import FIRST_PAGE, AnthropicMessages, read_models
from byok.dialects.anthropic.request import ask_for_cache
from byok.dialects.base import Target, UpstreamRequest, write_request
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
    broken_rules,
    encode,
    result,
    said,
    thought,
    user,
)
from tests.fakes.replay import recorded
from tests.fakes.sdk_types import check_type, sdk_type

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


def test_the_users_fields_replace_any_other() -> None:
    body = encode(user("?"), extra={"max_tokens": 7, "top_k": 3}).body
    assert (body["max_tokens"], body["top_k"]) == (7, 3)


def test_thinking_that_the_facts_exclude_is_not_sent_back() -> None:
    facts = ModelFacts("m", replay=Replay.NEVER)
    sent = encode(user("?"), assistant(thought(), CALL), result(), facts=facts)
    assert sent.body["messages"][1]["content"][0]["type"] == "tool_use"


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
@settings(max_examples=6)
@given(
    talks(),
    st.lists(
        st.tuples(
            wishes(),
            st.sampled_from([ModelFacts("m"), ADAPTIVE, GRADED, BUDGET]),
            st.booleans(),
        ),
        min_size=10,
        max_size=10,
    ),
)
def test_every_body_is_one_that_the_api_and_its_sdk_accept(
    talk: tuple[Message, ...], asked: list[tuple[dict[str, Any], ModelFacts, bool]]
) -> None:
    for fields, facts, cache in asked:
        target = Target("m", {}, facts, HERE, cache)
        chat = ChatRequest(talk, **fields)
        body = write_request(AnthropicMessages(), chat, target)[1].body
        assert broken_rules(body) == []
        check_type(sdk_type(*SDK), body)


# Conversations as blocks: order of results, signatures, texts that are not blank


OTHER = ToolCall("toolu_2", "list", "{}")


def messages(*given: Any, **fields: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = encode(*given, **fields).body["messages"]
    return found


def test_the_system_prompt_stands_beside_the_messages() -> None:
    body = encode(said(Role.SYSTEM, "Be brief.", " "), user("Hi.")).body
    assert body["system"] == [{"type": "text", "text": "Be brief."}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
    ]


def test_all_results_of_a_turn_come_first_in_one_message() -> None:
    _, calls, answered = messages(
        user("Look."),
        assistant("Both:", CALL, OTHER),
        result(CALL, "1 line"),
        result(OTHER, " ", is_error=True),
        user("And now?"),
    )
    assert [block["type"] for block in calls["content"]] == [
        "text", "tool_use", "tool_use",
    ]  # fmt: skip
    assert calls["content"][1]["input"] == {"path": "a"}
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1 line"},
        {
            "type": "tool_result",
            "tool_use_id": "toolu_2",
            "content": "(no output)",
            "is_error": True,
        },
        {"type": "text", "text": "And now?"},
    ]


def test_pictures_of_results_stay_in_the_results() -> None:
    *_, answered = messages(user("?"), assistant(CALL), result(images=(PNG,)))
    text, picture = answered["content"][0]["content"]
    assert text == {"type": "text", "text": "ok"}
    source = {"type": "base64", "media_type": "image/png", "data": PNG.data}
    assert picture == {"type": "image", "source": source}


def test_thinking_comes_back_as_it_was_and_where_it_was() -> None:
    _, turn, _ = messages(
        user("?"),
        assistant(thought(), thought(REDACTED), "Let me see.", CALL),
        result(),
    )
    assert turn["content"][:2] == [THOUGHT, REDACTED]
    assert [block["type"] for block in turn["content"][2:]] == ["text", "tool_use"]


@pytest.mark.parametrize(
    "part",
    [
        ThinkingPart("Hm."),
        thought(origin=Origin("anthropic", "box", "another")),
        thought({"type": "thinking", "thinking": "x", "signature": ""}),
        thought({"type": "redacted_thinking", "data": ""}),
        thought({"type": "text", "text": "forged"}),
        thought({}),
        thought(None),
    ],
)
def test_thinking_that_is_not_its_own_or_not_signed_is_left_out(
    part: ThinkingPart,
) -> None:
    _, turn, _ = messages(user("?"), assistant(part, CALL), result())
    assert [block["type"] for block in turn["content"]] == ["tool_use"]


@pytest.mark.parametrize("block", [THOUGHT, REDACTED])
def test_fields_that_no_thinking_has_are_left_out(block: dict[str, Any]) -> None:
    forged = {**block, "cache_control": {"type": "ephemeral"}, "text": "Obey."}
    _, turn, _ = messages(user("?"), assistant(thought(forged), CALL), result())
    assert turn["content"][0] == block


def test_pieces_of_a_text_are_joined_and_blank_ones_left_out() -> None:
    _, turn, _ = messages(
        user("?"),
        assistant("Let ", "me ", thought({}), " \n", CALL, "\n\n", TextPart("")),
        result(),
    )
    assert turn["content"][0] == {"type": "text", "text": "Let me "}
    assert [block["type"] for block in turn["content"]] == ["text", "tool_use"]


def test_texts_of_the_user_and_of_the_system_prompt_stand_apart() -> None:
    sent = encode(said(Role.SYSTEM, "Be brief.", "Say why."), user("[folder] /w", "?"))
    [system], [turn] = sent.body["system"], sent.body["messages"]
    assert system == {"type": "text", "text": "Be brief.\n\nSay why."}
    assert turn["content"] == [{"type": "text", "text": "[folder] /w\n\n?"}]


def test_a_part_that_no_user_has_becomes_words() -> None:
    (turn,) = messages(Message(Role.USER, (TextPart("Hi."), thought({}))))
    assert [block["type"] for block in turn["content"]] == ["text", "text"]


OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "list": {"type": "array", "items": {"properties": {"a": {"enum": [1]}}}},
        "any": {"anyOf": [{"type": "object"}, True]},
    },
    "$defs": {"D": {"type": "object", "additionalProperties": True}},
}


def test_a_schema_is_sent_with_all_its_objects_closed() -> None:
    body = encode(user("?"), json_answer=JsonAnswer(OPEN)).body
    schema = body["output_config"]["format"]["schema"]
    closed = {"additionalProperties": False}
    assert schema["properties"]["list"]["items"].items() >= closed.items()
    assert schema["properties"]["any"]["anyOf"] == [{"type": "object", **closed}, True]
    assert schema["$defs"]["D"]["additionalProperties"] is False
    assert "system" not in body
    assert "additionalProperties" not in OPEN


def test_without_a_schema_the_system_prompt_asks_for_json() -> None:
    asked = encode(said(Role.SYSTEM, "Be brief."), user("?"), json_answer=JsonAnswer())
    (system,) = asked.body["system"]
    assert system["text"].startswith("Be brief.") and "JSON" in system["text"]
    assert "output_config" not in asked.body


# The judge of bodies, judged by recorded requests and what the API answered


# Where the recording left something out that the API was sent.
ELIDED = ("ELIDED_BASE64", "MASSIVE_TEXT")
# Its result names another call than the one before it: accepted when it was recorded.
OLD = "anthropic__dd-trace-py-anthropic-completion-tools-call-with-tool-result-stream"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["anthropic_stream", "error"])
def test_the_judge_agrees_with_the_api(shared: Path, kind: str) -> None:
    judged = 0
    for row in recorded(shared, kind):
        status, body = row.get("status", 200), row["request"]
        if kind == "error" and (status, row["provider"]) != (400, "anthropic"):
            continue
        if not body or row["id"] == OLD or any(w in json.dumps(body) for w in ELIDED):
            continue
        judged += 1
        assert bool(broken_rules(body)) == (status == 400), row["id"]
    assert judged >= (123 if kind == "anthropic_stream" else 5)


def test_an_answer_that_was_begun_ends_without_white_space() -> None:
    assert messages(user("?"), assistant("So: \n"))[-1]["content"][0]["text"] == "So:"
    assert messages(user("?"), assistant(CALL))[-1]["content"][0]["type"] == "tool_use"


# When the model is asked to think, and what that excludes


THINKING_EFFORTS = ("low", "medium", "high")
EFFORTS_5 = (*THINKING_EFFORTS, "xhigh", "max")
NEXT = ToolCall("toolu_2", "view", "{}")
TOOL = ToolDefinition("view", "See.", {"type": "object"})
FORCED: dict[str, Any] = {
    "tools": (TOOL,),
    "tool_choice": ToolChoice(ToolUse.REQUIRED),
}


def asked(
    facts: ModelFacts, effort: str = "", *history: Message, **fields: Any
) -> UpstreamRequest:
    sampling = {n: fields.pop(n) for n in ("max_tokens", "temperature") if n in fields}
    history = history or (user("?"),)
    return encode(
        *history, facts=facts, sampling=Sampling(effort=effort, **sampling), **fields
    )


def thinking(sent: UpstreamRequest) -> Any:
    return sent.body.get("thinking", {}).get("type")


def test_newer_models_decide_themselves_and_show_their_thoughts() -> None:
    body = asked(ADAPTIVE).body
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "output_config" not in body


def test_without_effort_a_model_that_decides_itself_is_told_not_to_think() -> None:
    sent = asked(GRADED, "none", user("?"), assistant(thought(), CALL), result())
    assert sent.body["thinking"] == {"type": "disabled"}
    assert [b["type"] for b in sent.body["messages"][1]["content"]] == ["tool_use"]


@pytest.mark.parametrize(
    "fields",
    [{"silent": True}, {"temperature": 0.2}, {"max_tokens": 300}],
    ids=lambda fields: next(iter(fields)),
)
def test_thinking_that_nobody_asked_for_makes_way(fields: dict[str, Any]) -> None:
    facts = ModelFacts("m", thinking=True, adaptive_thinking=True, sampling=True)
    assert thinking(asked(facts, **fields)) == "disabled"
    assert "output_config" not in asked(facts, **fields).body


def test_with_an_effort_the_temperature_makes_way_and_it_is_said_once() -> None:
    sent = asked(GRADED, "high", temperature=0.2)
    assert thinking(sent) == "adaptive"
    assert "temperature" not in sent.body
    assert sent.notices == ("This model takes no temperature while it thinks.",)
    history = (user("?"), assistant("Yes."), user("Why?"))
    assert asked(GRADED, "high", *history, temperature=0.2).notices == ()


def test_a_demanded_call_excludes_thinking() -> None:
    sent = asked(GRADED, "high", **FORCED)
    assert thinking(sent) == "disabled"
    assert sent.body["output_config"] == {"effort": "high"}
    wide = ModelFacts("m", thinking=True, adaptive_thinking=True, efforts=EFFORTS_5)
    body = asked(wide, "max", **FORCED).body  # refused with more than "high"
    assert body["output_config"] == {"effort": "high"}
    assert "because a tool call was demanded" in sent.notices[0]
    assert asked(ADAPTIVE, **FORCED).notices == ()
    older = asked(BUDGET, "high", **FORCED)
    assert thinking(older) is None
    assert "because a tool call was demanded" in older.notices[0]


def test_older_models_get_a_budget_where_an_effort_is_wanted() -> None:
    assert thinking(asked(BUDGET)) is None
    assert thinking(asked(BUDGET, "none")) is None
    body = asked(BUDGET, "medium").body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 8192}
    assert asked(BUDGET, "max", max_tokens=4000).body["thinking"] == {
        "type": "enabled",
        "budget_tokens": 3000,
    }


def test_a_turn_of_calls_needs_its_own_thinking_at_its_beginning() -> None:
    signed = (user("?"), assistant(thought(), CALL), result())
    assert thinking(asked(BUDGET, "low", *signed)) == "enabled"
    steps = (*signed, assistant(NEXT), result(NEXT))
    assert thinking(asked(BUDGET, "low", *steps)) == "enabled"
    spoken = (*signed, user("Faster!"), assistant(NEXT), result(NEXT))
    assert thinking(asked(BUDGET, "low", *spoken)) is None


def test_thinking_pauses_in_a_turn_of_another_model_and_it_is_said_once() -> None:
    turn = (user("?"), assistant(CALL), result())
    sent = asked(BUDGET, "low", *turn)
    assert thinking(sent) is None
    assert "does not think in this turn" in sent.notices[0]
    later = asked(BUDGET, "low", *turn, assistant(NEXT), result(NEXT))
    assert (thinking(later), later.notices) == (None, ())
    answered = (*turn, assistant("Done."), user("More?"))
    assert thinking(asked(BUDGET, "low", *answered)) == "enabled"


@pytest.mark.parametrize("facts", [ModelFacts("m"), ModelFacts("m", thinking=False)])
def test_a_model_that_does_not_reason_is_asked_without(facts: ModelFacts) -> None:
    assert asked(facts, "none").notices == ()
    sent = asked(facts, "high")
    assert sent.body.keys() & {"thinking", "output_config"} == set()
    assert "`high` was not sent" in sent.notices[0]


def test_one_of_both_sampling_parameters_is_sent_and_at_most_1() -> None:
    sent = encode(user("?"), sampling=Sampling(temperature=1.5, top_p=0.9))
    assert sent.body["temperature"] == 1
    assert "top_p" not in sent.body
    assert len(sent.notices) == 2
    assert encode(user("?"), sampling=Sampling(top_p=0.9)).body["top_p"] == 0.9


POINT = {"cache_control": {"type": "ephemeral"}}
CACHE_TOOLS = [{"name": "a"}, {"name": "b"}]
SYSTEM = [{"type": "text", "text": "x"}]
BODY: dict[str, Any] = {"tools": CACHE_TOOLS, "system": SYSTEM, "messages": []}


def test_the_point_is_behind_the_system_prompt_or_else_behind_the_tools() -> None:
    both = ask_for_cache(BODY)
    assert both == {**BODY, "system": [{**SYSTEM[0], **POINT}], **POINT}
    alone = ask_for_cache({"tools": CACHE_TOOLS, "messages": []})
    assert alone["tools"] == [CACHE_TOOLS[0], {**CACHE_TOOLS[1], **POINT}]
    assert ask_for_cache({"messages": []}) == {"messages": [], **POINT}


def test_a_long_cache_has_its_time_in_every_point() -> None:
    point = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = ask_for_cache(BODY, is_long=True)
    assert asked == {**BODY, "system": [{**SYSTEM[0], **point}], **point}


def test_a_turn_of_many_blocks_has_a_point_where_the_last_request_ended() -> None:
    def messages(calls: int) -> list[dict[str, Any]]:
        return [
            {"role": "user", "content": [{"type": "text"}, {"type": "image"}]},
            {"role": "assistant", "content": [{"type": "tool_use"}] * calls},
            {"role": "user", "content": [{"type": "tool_result"}] * calls},
        ]

    asked = ask_for_cache({**BODY, "messages": messages(10)})
    first, turn, results = asked["messages"]
    assert first["content"] == [{"type": "text"}, {"type": "image", **POINT}]
    assert [turn, results] == messages(10)[1:]
    assert ask_for_cache({**BODY, "messages": messages(9)})["messages"] == messages(9)


# Headers, and the list of models


@pytest.fixture
def dialect() -> AnthropicMessages:
    return AnthropicMessages.of("anthropic")


def test_the_version_is_sent_with_and_without_a_key(dialect: AnthropicMessages) -> None:
    assert dialect.headers("")["anthropic-version"] == "2023-06-01"
    assert "x-api-key" not in dialect.headers("")
    assert dialect.headers("k")["x-api-key"] == "k"


YES, NO = {"supported": True}, {"supported": False}
OPUS = {
    "id": "claude-opus-5",
    "max_input_tokens": 1_000_000,
    "max_tokens": 128_000,
    "capabilities": {
        "image_input": YES,
        "effort": {**YES, "low": YES, "high": YES, "max": YES, "medium": NO},
        "thinking": {**YES, "types": {"enabled": NO, "adaptive": YES}},
    },
}
FACTS = ModelFacts(
    "claude-opus-5",
    window=1_000_000,
    max_output=128_000,
    images=True,
    thinking=True,
    efforts=("low", "high", "max"),
    adaptive_thinking=True,
)


def test_the_list_tells_limits_and_capabilities() -> None:
    page = read_models({"data": [OPUS, {"id": "claude-3-haiku"}], "has_more": False})
    assert page.models == (FACTS, ModelFacts("claude-3-haiku"))
    assert page.next_path == ""


def test_the_next_page_begins_after_the_last_model() -> None:
    page = read_models({"data": [OPUS], "has_more": True, "last_id": "a/b c"})
    assert page.next_path == f"{FIRST_PAGE}&after_id=a%2Fb%20c"
    assert read_models({"data": [], "has_more": True, "last_id": 3}).next_path == ""
