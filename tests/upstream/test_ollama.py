"""A conversation with an Ollama: nothing is cut, and a model is seldom loaded again."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from byok.core.chat import (
    ChatRequest,
    FimRequest,
    Message,
    NextEditRequest,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.core.errors import ContextLengthExceeded
from byok.core.events import Finish, FinishReason, Notice, StreamEvent, TextDelta
from byok.dialects.fim_codecs import next_edit_codecs, ollama_codecs
from byok.dialects.fim_templates import FimMode
from byok.dialects.ollama.dialect import Ollama
from byok.upstream.client import HttpUpstream
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import PATIENT, Key
from tests.fakes.histories import PNG, user
from tests.fakes.ollama_server import OllamaModel, OllamaServer, text_line
from tests.fakes.scripted import events_of

K = 1024
TOOLS = tuple(
    ToolDefinition(f"tool_{n}", "Does things. " * 90, {"type": "object"})
    for n in range(18)
)  # about 20 kB


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as server:
        yield server


class Box:
    """An upstream that asks the fake Ollama."""

    def __init__(
        self, server: OllamaServer, transports: Transports, **spec: Any
    ) -> None:
        codecs = {**ollama_codecs(), FimMode.CHAT: None}
        api = Api(Ollama(), server.url)
        made = UpstreamSpec("box", (api,), timeouts=PATIENT, fim=codecs, **spec)
        self.upstream = HttpUpstream(made, transports, Key())

    async def ask(self, chat: ChatRequest, model: str = "coder") -> list[StreamEvent]:
        return await events_of(self.upstream, chat, model)


def agent(steps: int, size: int) -> ChatRequest:
    messages = [user("Port it.")]
    for number in range(steps):
        call = ToolCall(f"c{number}", "tool_1", "{}")
        result = ToolResult(call.id, call.name, f"{number} " * (size // 2))
        messages += [Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (result,))]
    return ChatRequest(tuple(messages), TOOLS, agent=True)


async def test_ten_turns_of_an_agent_are_read_whole_and_loaded_twice(
    server: OllamaServer, transports: Transports
) -> None:
    box = Box(server, transports)
    for steps in range(10):
        assert TextDelta("Fine.") in await box.ask(agent(steps, 12_000))
    assert (server.cuts, server.refusals) == ([], [])
    assert server.loads == [32 * K, 64 * K]
    assert await box.upstream.window("coder") == 64 * K


async def test_a_prompt_with_more_tokens_than_estimated_is_tried_with_more(
    server: OllamaServer, transports: Transports
) -> None:
    server.ratio = 1.0
    await Box(server, transports).ask(agent(1, 12_000))
    assert server.loads == [32 * K, 64 * K]
    assert len(server.requests) == 2


async def test_what_exceeds_the_limit_is_refused_with_its_number(
    server: OllamaServer, transports: Transports
) -> None:
    server.models["coder:latest"] = OllamaModel("tools", length=8 * K)
    with pytest.raises(ContextLengthExceeded) as caught:
        await Box(server, transports).ask(agent(3, 20_000))
    assert caught.value.window == 8 * K


async def test_a_window_that_memory_does_not_hold_is_halved(
    server: OllamaServer, transports: Transports
) -> None:
    server.memory = 16 * K
    box = Box(server, transports)
    assert TextDelta("Fine.") in await box.ask(agent(1, 100))
    assert server.loads == [16 * K]
    assert await box.upstream.window("coder") == 16 * K


async def test_a_model_without_tools_or_sight_is_known_before_it_refuses(
    server: OllamaServer, transports: Transports
) -> None:
    server.models["plain:latest"] = OllamaModel()
    messages = (Message(Role.USER, (TextPart("Look."), PNG)),)
    chat = ChatRequest(messages, TOOLS, agent=True)
    events = await Box(server, transports).ask(chat, "plain")
    told = [event.text for event in events if isinstance(event, Notice)]
    assert len(told) == 2 and "without tools" in told[0] and "images" in told[1]
    [body] = server.requests
    assert "tools" not in body and "images" not in body["messages"][0]
    assert body["options"]["num_ctx"] == 32 * K, "an agent needs that all the same"


async def test_a_completion_keeps_the_window_of_the_chats(
    server: OllamaServer, transports: Transports
) -> None:
    server.models["coder:latest"] = OllamaModel("tools", "insert")
    box = Box(server, transports)
    await box.ask(agent(0, 0))
    gap = ChatRequest((), fim=FimRequest("x = ", "\n"))
    assert await box.ask(gap) == [TextDelta("x + 1"), *(await box.ask(gap))[1:]]
    assert server.loads == [32 * K]


async def test_a_next_edit_is_a_raw_prompt(
    server: OllamaServer, transports: Transports
) -> None:
    server.models["sweep-next-edit:1.5b"] = OllamaModel()
    box = Box(server, transports, next_edit=next_edit_codecs("ollama"))
    request = NextEditRequest("def f(x):\n    ret", "urn x\n", path="a.py")
    events = await box.ask(
        ChatRequest((user("Edit."),), next_edit=request), "sweep-next-edit:1.5b"
    )
    assert events[-1] == Finish(FinishReason.STOP, format="sweep")
    body = server.requests[-1]
    assert body["raw"] and body["prompt"].endswith("<|file_sep|>updated/a.py\n")
    assert body["options"]["stop"][0] == "<|file_sep|>"
    assert body["options"]["temperature"] == 0


async def test_a_model_without_infilling_completes_by_a_chat(
    server: OllamaServer, transports: Transports
) -> None:
    server.scripts = [[text_line("y")]]
    gap = ChatRequest((user("Fill in."),), fim=FimRequest("x = ", "\n"))
    events = await Box(server, transports).ask(gap)
    assert events[0] == TextDelta("y")
    assert events[-1] == Finish(FinishReason.STOP)
