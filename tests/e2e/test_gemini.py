"""Agents on Gemini's own API, against a server as strict as it is."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.strict_gemini import GeminiServer

SCHEMA = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
TOOLS = [{"name": "3 view", "description": "See.", "input_schema_json": SCHEMA}]
KEY = {"BYOK_KEY_BOX": "k"}
MODEL = "byok:box:gemini-3.6-flash"


@pytest.fixture
async def server() -> AsyncIterator[GeminiServer]:
    async with GeminiServer(steps=2, calls=2) as server:
        yield server


def box(server: GeminiServer, **fields: Any) -> dict[str, Any]:
    models = ["gemini-3.6-flash", "gemini-3-pro", "gemini-2.5-pro"]
    section = {"type": "gemini", "base_url": server.url, "models": models, **fields}
    return {"upstreams": {"box": section}}


class Agent:
    """Asks, answers tool calls and keeps the history as an editor does."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []

    async def turn(self, editor: Editor, model: str = MODEL) -> Answer:
        """Ask once, and run tools until the model is done."""
        asked: dict[str, Any] = {"message": "Go on."}
        while True:
            answer = await editor.chat(
                chat_history=self.history,
                tool_definitions=TOOLS,
                model=model,
                **asked,
            )
            self.history.append(
                {
                    "request_message": asked["message"],
                    "request_nodes": asked.get("nodes", []),
                    "response_text": answer.text,
                    "response_nodes": answer.nodes,
                }
            )
            if not answer.tool_uses:
                return answer
            results = [
                {
                    "id": n,
                    "type": 1,
                    "tool_result_node": {"tool_use_id": use["tool_use_id"],
                                         "content": "ok"},
                }
                for n, use in enumerate(answer.tool_uses, 1)
            ]  # fmt: skip
            asked = {"message": "", "nodes": results}


@pytest.mark.parametrize("ids", [True, False])
async def test_gemini_agent_gets_its_signatures_back(
    server: GeminiServer, ids: bool
) -> None:
    server.ids = ids
    agent = Agent()
    async with running(box(server), environ=KEY) as editor:
        for _ in range(3):
            assert (await agent.turn(editor)).text == "Done."
    assert server.refusals == []
    assert server.bypassed == 0
    _, last = server.requests[-1]
    sent = [p["thoughtSignature"] for c in last["contents"] for p in c["parts"]
            if "thoughtSignature" in p]  # fmt: skip
    # Two steps and the end of each of three turns; the last end is only answered.
    assert len(sent) == 8
    assert {h["x-goog-api-key"] for h in server.headers} == {"k"}


async def test_gemini_agent_survives_a_change_of_the_model(
    server: GeminiServer,
) -> None:
    agent = Agent()
    async with running(box(server), environ=KEY) as editor:
        for model in ("3.6-flash", "2.5-pro", "3-pro", "3.6-flash"):
            answer = await agent.turn(editor, f"byok:box:gemini-{model}")
            assert answer.text == "Done."
    assert server.refusals == []


async def test_gemini_limits_come_from_the_list_of_models(
    server: GeminiServer,
) -> None:
    server.models = [
        {"name": f"models/gemini-{n}", "inputTokenLimit": 32_768 + n} for n in range(3)
    ]
    async with running(box(server, models=[]), environ=KEY) as editor:
        await editor.services.catalog.settle(5.0)
        listed = [m.model for m in editor.services.catalog.list_models()]
    assert listed == ["gemini-0", "gemini-1", "gemini-2"]


async def test_gemini_answer_that_is_too_long_is_asked_for_shorter(
    server: GeminiServer,
) -> None:
    unknown = "gemini-99"
    settings = box(server, max_tokens=200_000, models=[unknown])
    async with running(settings, environ=KEY) as editor:
        assert (await editor.chat(model=f"byok:box:{unknown}")).text == "Done."
    caps = [b["generationConfig"]["maxOutputTokens"] for _, b in server.requests]
    assert caps == [200_000, 65_536]
