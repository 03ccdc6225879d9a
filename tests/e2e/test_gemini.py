"""Agents on Gemini's own API, against a server as strict as it is."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.bodies import tool
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import running
from tests.fakes.strict_gemini import GeminiServer

TOOLS = [tool("3 view", n="integer")]
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


@pytest.mark.parametrize("ids", [True, False])
async def test_gemini_agent_gets_its_signatures_back(
    server: GeminiServer, ids: bool
) -> None:
    server.ids = ids
    agent = AgentClient(TOOLS)
    async with running(box(server), environ=KEY) as editor:
        for _ in range(3):
            assert (await agent.turn(editor, MODEL)).text == "Done."
    assert server.refusals == []
    assert server.bypassed == 0 and server.lost == []
    _, last = server.requests[-1]
    sent = [p["thoughtSignature"] for c in last["contents"] for p in c["parts"]
            if "thoughtSignature" in p]  # fmt: skip
    # Two steps and the end of each of three turns; the last end is only answered.
    assert len(sent) == 8
    assert {h["x-goog-api-key"] for h in server.headers} == {"k"}


async def test_gemini_answer_that_is_too_long_is_asked_for_shorter(
    server: GeminiServer,
) -> None:
    unknown = "gemini-99"
    settings = box(server, max_tokens=200_000, models=[unknown])
    async with running(settings, environ=KEY) as editor:
        assert (await editor.chat(model=f"byok:box:{unknown}")).text == "Done."
    caps = [b["generationConfig"]["maxOutputTokens"] for _, b in server.requests]
    assert caps == [200_000, 65_536]
