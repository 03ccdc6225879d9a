"""Requests of `/api/chat`: read by a strict server, with nothing left out silently."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.model_facts import EFFORTS, ModelFacts, Replay
from byok.dialects.ollama.answer import REASONING
from byok.dialects.ollama.dialect import Ollama
from tests.fakes.histories import PNG, histories, user
from tests.fakes.ollama_server import broken_rules

HERE = Origin("ollama", "box", "m")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
VIEW = ToolDefinition("view", "Shows a file.", SCHEMA)
EDIT = ToolDefinition("edit", "Edits a file.", SCHEMA)


def encode(
    *messages: Message, facts: ModelFacts | None = None, **fields: Any
) -> UpstreamRequest:
    target = Target("m", facts=facts or ModelFacts("m"), origin=HERE, num_ctx=8192)
    asked = ChatRequest(messages or (user("Hi?"),), **fields)
    _, request = write_request(Ollama(), asked, target)
    assert broken_rules(request.body) == []
    return request


def test_a_prompt_is_never_cut_and_an_answer_ends_with_the_window() -> None:
    body = encode().body
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi?"}],
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 8192},
    }


def test_options_of_the_user_are_added_to_those_of_byok() -> None:
    extra = {"options": {"num_gpu": 1, "num_ctx": 99}, "keep_alive": "1h"}
    target = Target("m", extra, num_ctx=8192)
    chat = ChatRequest((user("Hi?"),), sampling=Sampling(0.5))
    body = write_request(Ollama(), chat, target)[1].body
    assert body["options"] == {"num_ctx": 99, "temperature": 0.5, "num_gpu": 1}
    assert body["keep_alive"] == "1h"
    _, plain = write_request(Ollama(), ChatRequest(()), Target("m"))
    assert "options" not in plain.body


@pytest.mark.parametrize(
    ("effort", "facts", "think", "notices"),
    [
        ("", {}, None, 0),
        ("none", {}, False, 0),
        ("none", {"thinking": False}, None, 0),
        ("minimal", {}, "low", 0),
        ("none", {"efforts": ("low", "medium", "high")}, "low", 0),
        ("max", {"efforts": ("none", "high", "max")}, "max", 0),
        ("odd", {}, None, 1),
    ],
)
def test_an_effort_becomes_the_nearest_level(
    effort: str, facts: dict[str, Any], think: object, notices: int
) -> None:
    request = encode(facts=ModelFacts("m", **facts), sampling=Sampling(effort=effort))
    assert request.body.get("think") == think
    assert len(request.notices) == notices
    later = (user("Hi?"), Message(Role.ASSISTANT, (TextPart("Yes?"),)), user("Go."))
    fields: Any = {
        "facts": ModelFacts("m", **facts),
        "sampling": Sampling(effort=effort),
    }
    assert encode(*later, **fields).notices == ()


def test_a_json_answer_is_a_format() -> None:
    assert encode(json_answer=JsonAnswer()).body["format"] == "json"
    assert encode(json_answer=JsonAnswer(SCHEMA)).body["format"] == SCHEMA


def offered(request: UpstreamRequest) -> list[str]:
    return [tool["function"]["name"] for tool in request.body.get("tools", ())]


def test_a_demand_for_a_tool_is_told_to_be_none() -> None:
    both = (VIEW, EDIT)
    assert encode(tools=both).notices == ()
    request = encode(tools=both, tool_choice=ToolChoice(ToolUse.REQUIRED, "edit"))
    assert offered(request) == ["edit"]
    assert len(request.notices) == 1
    request = encode(tools=both, tool_choice=ToolChoice(ToolUse.REQUIRED))
    assert (offered(request), len(request.notices)) == (["view", "edit"], 1)
    request = encode(tools=both, tool_choice=ToolChoice(ToolUse.NONE))
    assert (offered(request), request.notices) == ([], ())


def test_pictures_stand_beside_the_text_and_those_of_results_below() -> None:
    call = ToolCall("c", "view", "{}")
    messages = (
        Message(Role.USER, (TextPart("Look."), PNG)),
        Message(Role.ASSISTANT, (call,)),
        Message(Role.TOOL, (ToolResult("c", "view", "A picture.", images=(PNG,)),)),
    )
    first, _, result, last = encode(*messages).body["messages"]
    assert first == {"role": "user", "content": "Look.", "images": [PNG.data]}
    assert result["content"] == "A picture." and "images" not in result
    assert last["images"] == [PNG.data] and "view (c)" in last["content"]


def test_calls_have_their_arguments_as_objects_and_results_name_the_tool() -> None:
    call = ToolCall("c 1", "my tool!", '{"path": "ü"}')
    request = encode(
        user("Go."),
        Message(Role.ASSISTANT, (TextPart("I"), TextPart(" look."), call)),
        Message(Role.TOOL, (ToolResult("c 1", "my tool!", "", is_error=True),)),
    )
    _, assistant, result = request.body["messages"]
    function = assistant["tool_calls"][0]["function"]
    assert assistant["content"] == "I look."
    assert function["arguments"] == {"path": "ü"}
    assert request.tool_names[function["name"]] == "my tool!"
    assert result["tool_name"] == function["name"]
    assert result["content"] == "ERROR: (no output)"


@pytest.mark.parametrize(
    ("replay", "plain", "calling"),
    [
        (None, False, True),
        (Replay.TOOL_TURNS, False, True),
        (Replay.EVERY_TURN, True, True),
        (Replay.NEVER, False, False),
    ],
)
def test_reasoning_goes_back_as_the_facts_say(
    replay: Replay | None, plain: bool, calling: bool
) -> None:
    mine = ThinkingPart("Hm.", ProviderData(HERE, REASONING))
    request = encode(
        user("Go."),
        Message(Role.ASSISTANT, (mine, TextPart("Sure."))),
        user("Now."),
        Message(Role.ASSISTANT, (mine, ToolCall("c", "view", "{}"))),
        Message(Role.TOOL, (ToolResult("c", "view", "x"),)),
        facts=ModelFacts("m", replay=replay),
    )
    _, said, _, called, _ = request.body["messages"]
    assert [said.get("thinking"), called.get("thinking")] == [
        "Hm." if sent else None for sent in (plain, calling)
    ]


FACTS = [
    ModelFacts("m", replay=replay, thinking=thinking)
    for replay in (None, *Replay)
    for thinking in (None, True, False)
]
EACH = 10  # conversations from one history: drawing it is what takes time


def vary(history: tuple[Message, ...], chance: Random) -> ChatRequest:
    """Add reasoning of some model to a history, and settings to the request."""
    messages: list[Message] = []
    for message in history:
        parts: list[Part] = []
        for part in message.parts:
            if message.role is Role.ASSISTANT and chance.random() < 0.5:
                origin = chance.choice([HERE, Origin("gemini", "box", "m")])
                parts.append(ThinkingPart("Hm", ProviderData(origin, {"x": [1]})))
            parts.append(part)
        messages.append(Message(message.role, tuple(parts)))
    if chance.random() < 0.5:
        messages.insert(0, Message(Role.SYSTEM, (TextPart("Be exact."),)))
    return ChatRequest(
        tuple(messages),
        tools=chance.choice([(), (VIEW,), (VIEW, EDIT)]),
        sampling=Sampling(0.5, None, 9, chance.choice(["", *EFFORTS]), ("END",)),
        tool_choice=ToolChoice(chance.choice([*ToolUse])),
        json_answer=chance.choice([None, JsonAnswer(SCHEMA)]),
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(histories(), st.integers(0, 2**32))
def test_random_conversations_are_read_as_they_are(
    history: tuple[Message, ...], seed: int
) -> None:
    chance = Random(seed)
    for _ in range(EACH):
        target = Target("m", facts=chance.choice(FACTS), origin=HERE)
        body = write_request(Ollama(), vary(history, chance), target)[1].body
        assert broken_rules(body) == []
