"""Agents on an Ollama with 4k by default: nothing is cut, or it is told at once."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.ollama_server import OllamaServer, call_line

pytestmark = pytest.mark.slow
TOOLS = [
    tool(f"tool_{n}", says="Words. " * 150, path="string") for n in range(18)
]  # 20 kB


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as server:
        yield server


def box(server: OllamaServer, **fields: Any) -> dict[str, Any]:
    section = {"type": "ollama", "base_url": server.url + "/v1", **fields}
    return {"upstreams": {"box": section}}


async def work(editor: Editor, turns: int) -> list[Answer]:
    """Let an agent work: each turn brings the result of the last call."""
    agent = AgentClient(
        TOOLS,
        run=lambda number: {"content": f"{number} line\n" * 600},
        conversation_id="c",
    )
    return [await agent.step(editor) for _ in range(turns)]


def told(answers: list[Answer]) -> list[int]:
    """Return the turns in which something of byok was said."""
    return [n for n, answer in enumerate(answers) if "[byok]" in answer.text]


async def test_ten_turns_of_an_agent_with_20_kb_of_tools_lose_nothing(
    server: OllamaServer,
) -> None:
    server.scripts = [[call_line("tool_3", {"path": f"{n}.py"})] for n in range(10)]
    async with running(box(server)) as editor:
        answers = await work(editor, 10)
    assert len([answer for answer in answers if answer.tool_uses]) == 10
    assert (server.cuts, server.refusals, told(answers)) == ([], [], [])
    assert len(server.loads) <= 2
    assert len(server.requests[-1]["messages"]) >= 20


async def test_a_larger_window_of_the_settings_is_no_reason_for_a_refusal(
    server: OllamaServer,
) -> None:
    server.scripts = [[call_line("tool_3", {"path": f"{n}.py"})] for n in range(14)]
    sizes = {"context_window": 131_072, "num_ctx": 12_288}
    async with running(box(server, **sizes)) as editor:
        answers = await work(editor, 14)
    assert len([answer for answer in answers if answer.tool_uses]) == 14
    turns = [request for request in server.requests if request.get("tools")]
    assert len(turns) == 14, "none is refused and asked again"


async def test_a_cut_of_the_compatible_api_is_told_in_the_first_turn(
    server: OllamaServer,
) -> None:
    async with running(box(server, dialect="openai_chat")) as editor:
        answers = await work(editor, 3)
    assert server.cuts, "it cannot be prevented there"
    assert told(answers) == [0]
    assert "OLLAMA_CONTEXT_LENGTH" in answers[0].text
