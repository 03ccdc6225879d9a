"""The scripted upstream: it echoes, calls tools, and does not pose as a model."""

import json

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.errors import BadRequest, UpstreamError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.upstream.demo import (
    MODEL,
    DemoUpstream,
    unconfigured_upstream,
    upstream_without_models,
)
from tests.fakes.histories import user
from tests.fakes.scripted import events_of

TOOLS = tuple(
    ToolDefinition(name, "", {"type": "object"})
    for name in ("view", "view-range", "a.b")
)


async def ask(*messages: Message, tools: bool = True) -> list[StreamEvent]:
    chat = ChatRequest(messages, tools=TOOLS if tools else ())
    demo = DemoUpstream(pause=0)
    return await events_of(demo, chat, MODEL)


def said(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def called(events: list[StreamEvent]) -> tuple[str, str]:
    """Give the name and the arguments of the only call, "" where there is none."""
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len(calls) <= 1
    return (calls[0].name, calls[0].arguments) if calls else ("", "")


async def test_demo_echoes_and_says_that_it_is_no_model() -> None:
    events = await ask(user("old words", "What is\n  up?"))
    assert "no model" in said(events)
    assert said(events).endswith("What is\n  up?")
    assert "old words" not in said(events)
    assert called(events) == ("", "")
    assert isinstance(events[-2], Usage)
    assert events[-1] == Finish(FinishReason.STOP)
    assert sum(isinstance(event, TextDelta) for event in events) > 3


@pytest.mark.parametrize(
    ("question", "call"),
    [
        ('Please view {"path": "a.py", "n": {"x": 1}} now', "view"),
        ('view-range {"path": "a.py", "n": {"x": 1}}', "view-range"),
        ('a.b: {"path": "a.py", "n": {"x": 1}}', "a.b"),
    ],
)
async def test_demo_calls_the_tool_that_the_question_names(
    question: str, call: str
) -> None:
    events = await ask(user(question))
    name, arguments = called(events)
    assert name == call
    assert json.loads(arguments) == {"path": "a.py", "n": {"x": 1}}
    assert "no model" in said(events)
    assert events[-1] == Finish(FinishReason.TOOL_CALLS)


async def test_demo_refuses_verbatim_requests() -> None:
    chat = ChatRequest((user("x"),), verbatim=True)
    with pytest.raises(UpstreamError, match="no model"):
        await events_of(DemoUpstream(pause=0), chat, MODEL)


async def test_demo_finds_the_question_before_the_editor_state() -> None:
    state = "[workspace]\nroot: /src/view"
    edits = "[recent edits by the user]\na.py\n  1: view → view"
    name, arguments = called(await ask(user('view {"a": 1}', state, edits)))
    assert (name, json.loads(arguments)) == ("view", {"a": 1})
    assert said(await ask(user("Hello!", state))).endswith("You asked: Hello!")
    assert "root: /src" in said(await ask(user("[workspace]\nroot: /src")))


async def test_demo_calls_no_tool_that_the_editor_names_beside_a_result() -> None:
    call = ToolCall("c", "view", "{}")
    edits = TextPart("[recent edits by the user]\na.py\n  1: view", is_aside=True)
    events = await ask(
        user("view {}"),
        Message(Role.ASSISTANT, (call,)),
        Message(Role.TOOL, (ToolResult("c", "view", "found"),)),
        Message(Role.USER, (edits,)),
    )
    assert said(events).endswith("found")
    assert events[-1] == Finish(FinishReason.STOP)


# Upstreams that refuse: they say what to do


@pytest.mark.parametrize("name", ["x" * 33, "sk-Secret", "a b", ""])
def test_unconfigured_upstream_hides_an_invalid_name(name: str) -> None:
    assert unconfigured_upstream(name).name == "unknown"


@pytest.mark.parametrize(
    ("vendor", "cure"), [("ollama", "ollama pull"), ("vllm", "[upstreams.box]")]
)
async def test_a_server_without_models_gets_no_invented_one(
    vendor: str, cure: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        await events_of(upstream_without_models("box", vendor), ChatRequest(()))
    assert cure in caught.value.hint
