"""Agents on the APIs of Responses, Gemini and Ollama, against servers as strict."""

from typing import Any

import pytest

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.ollama_server import OllamaServer, call_line
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.strict_gemini import GeminiServer

KEY = {"BYOK_KEY_BOX": "k"}


def box(kind: str, url: str, **fields: Any) -> dict[str, Any]:
    """Return settings with one upstream."""
    section = {"type": kind, "base_url": url, "timeout": 20, **fields}
    return {"upstreams": {"box": section}}


# Responses: reasoning from the first step to the last.


@pytest.mark.parametrize(
    ("model", "kind", "fields"),
    [
        ("gpt-x", "openai", {}),
        ("gpt-x", "openai", {"dialect": "openai_chat"}),  # it names the other API
        ("gpt-5.6", "openai", {}),
        ("gpt-5.6", "openai_compatible", {}),  # as its family needs
    ],
)
async def test_responses_keep_reasoning_and_phases_of_an_agent(
    model: str, kind: str, fields: dict[str, str]
) -> None:
    agent = AgentClient()
    async with (
        ResponsesServer() as server,
        running(box(kind, server.url, **fields), environ=KEY) as editor,
    ):
        answers = [await agent.step(editor, f"byok:box:{model}") for _ in range(4)]
    assert server.refusals == []
    assert "Done." in answers[-1].text
    items = server.requests[-1]["input"]
    assert [i.get("type") for i in items[1:]] == [
        *("reasoning", "message", "function_call", "function_call_output")
    ] * 3
    assert server.requests[-1]["store"] is False


@pytest.mark.parametrize("kind", ["openai", "xai", "azure"])
async def test_responses_give_way_to_chat_completions_where_the_path_is_missing(
    kind: str,
) -> None:
    async with ResponsesServer(has_path=False) as server:
        config = box(kind, server.url)
        async with running(config, environ=KEY) as editor:
            answer = await AgentClient().step(editor, "byok:box:gpt-x")
            again = await AgentClient().step(editor, "byok:box:gpt-x")
    assert answer.text == again.text == "By chat."
    assert server.paths == ["responses", "chat/completions", "chat/completions"]


# Gemini: its signatures.


@pytest.mark.parametrize("ids", [True, False])
async def test_gemini_agent_gets_its_signatures_back(ids: bool) -> None:
    agent, model = AgentClient([tool("3 view", n="integer")]), "gemini-3.6-flash"
    async with (
        GeminiServer(steps=2, calls=2, ids=ids) as server,
        running(box("gemini", server.url, models=[model]), environ=KEY) as editor,
    ):
        for _ in range(3):
            answer = await agent.turn(editor, f"byok:box:{model}")
            assert answer.text == "Done."
    assert server.refusals == []
    assert server.bypassed == 0 and server.lost == []
    _, last = server.requests[-1]
    sent = [p["thoughtSignature"] for c in last["contents"] for p in c["parts"]
            if "thoughtSignature" in p]  # fmt: skip
    # Two steps and the end of each of three turns; the last end is only answered.
    assert len(sent) == 8
    assert {h["x-goog-api-key"] for h in server.headers} == {"k"}


async def test_gemini_answer_that_is_too_long_is_asked_for_shorter() -> None:
    unknown = "gemini-99"
    fields = {"max_tokens": 200_000, "models": [unknown]}
    async with (
        GeminiServer() as server,
        running(box("gemini", server.url, **fields), environ=KEY) as editor,
    ):
        assert (await editor.chat(model=f"byok:box:{unknown}")).text == "Done."
    caps = [b["generationConfig"]["maxOutputTokens"] for _, b in server.requests]
    assert caps == [200_000, 65_536]


# Ollama with 4k by default: nothing is cut, or it is told at once.

TOOLS = [
    tool(f"tool_{n}", says="Words. " * 150, path="string") for n in range(18)
]  # 20 kB


async def work(editor: Editor, server: OllamaServer, turns: int) -> list[Answer]:
    """Let an agent work: each turn brings the result of the last call."""
    calls = [[call_line("tool_3", {"path": f"{n}.py"})] for n in range(turns)]
    server.scripts = calls
    agent = AgentClient(
        TOOLS,
        run=lambda number: {"content": f"{number} line\n" * 600},
        conversation_id="c",
    )
    return [await agent.step(editor) for _ in range(turns)]


def told(answers: list[Answer]) -> list[int]:
    """Return the turns in which something of byok was said."""
    return [n for n, answer in enumerate(answers) if "[byok]" in answer.text]


@pytest.mark.slow
async def test_ten_turns_of_an_agent_with_20_kb_of_tools_lose_nothing() -> None:
    async with (
        OllamaServer() as server,
        running(box("ollama", f"{server.url}/v1")) as editor,
    ):
        answers = await work(editor, server, 10)
    assert len([answer for answer in answers if answer.tool_uses]) == 10
    assert (server.cuts, server.refusals, told(answers)) == ([], [], [])
    assert len(server.loads) <= 2
    assert len(server.requests[-1]["messages"]) >= 20


@pytest.mark.slow
async def test_a_larger_window_of_the_settings_is_no_reason_for_a_refusal() -> None:
    sizes = {"context_window": 131_072, "num_ctx": 12_288}
    async with (
        OllamaServer() as server,
        running(box("ollama", f"{server.url}/v1", **sizes)) as editor,
    ):
        answers = await work(editor, server, 14)
    assert len([answer for answer in answers if answer.tool_uses]) == 14
    turns = [request for request in server.requests if request.get("tools")]
    assert len(turns) == 14, "none is refused and asked again"


@pytest.mark.slow
async def test_a_cut_of_the_compatible_api_is_told_in_the_first_turn() -> None:
    fields = {"dialect": "openai_chat"}
    async with (
        OllamaServer() as server,
        running(box("ollama", f"{server.url}/v1", **fields)) as editor,
    ):
        answers = await work(editor, server, 3)
    assert server.cuts, "it cannot be prevented there"
    assert told(answers) == [0]
    assert "OLLAMA_CONTEXT_LENGTH" in answers[0].text
