"""Claude through the Messages API and the real daemon, against a strict server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.messages_api import sse, start

SCHEMA = '{"type": "object", "properties": {"path": {"type": "string"}}}'
TOOLS = [{"name": "view", "description": "See.", "input_schema_json": SCHEMA}]
OVERLOADED = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}
BOX: dict[str, Any] = {
    "type": "anthropic",
    "model": "claude-opus-4-8",
    "effort": "high",
    "api_key_env": "KEY",
}


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer("sk-ant-1") as server:
        yield server


@pytest.fixture
async def editor(server: AnthropicServer) -> AsyncIterator[Editor]:
    settings = {"upstreams": {"box": {**BOX, "base_url": server.url}}}
    async with running(settings, environ={"KEY": "sk-ant-1"}) as editor:
        yield editor


def step(asked: Answer, question: str, *, nodes: bool) -> dict[str, Any]:
    """The next request of an agent: the history, and the results of the calls."""
    kept = [n for n in asked.nodes if nodes or n["type"] != 8]
    past = {
        "request_message": question,
        "response_text": asked.text,
        "response_nodes": kept,
    }
    results = [
        {
            "id": number,
            "type": 1,
            "tool_result_node": {"tool_use_id": use["tool_use_id"], "content": "ok"},
        }
        for number, use in enumerate(asked.tool_uses, 1)
    ]
    return {"chat_history": [past], "nodes": results, "tool_definitions": TOOLS}


@pytest.mark.parametrize("nodes", [True, False], ids=["keeps", "drops"])
async def test_anthropic_gets_its_signed_reasoning_back_with_a_result(
    server: AnthropicServer, editor: Editor, nodes: bool
) -> None:
    asked = await editor.chat("Look.", tool_definitions=TOOLS)
    assert [use["tool_name"] for use in asked.tool_uses] == ["view"]
    answered = await editor.chat("", **step(asked, "Look.", nodes=nodes))
    assert (answered.text, answered.last["stop_reason"]) == ("Fine.", 1)
    assert server.refusals == []
    first, second = server.requests
    turn = second["messages"][1]["content"]
    assert [block["type"] for block in turn] == ["thinking", "tool_use"]
    assert turn[0]["signature"] == "c2ln0=="
    assert first["thinking"]["type"] == "adaptive"
    assert first["output_config"] == {"effort": "high"}
    # What is cached is a prefix of the next request.
    assert first["cache_control"] == {"type": "ephemeral"}
    assert second["tools"] == first["tools"]
    assert second["messages"][:1] == first["messages"]


async def test_anthropic_lists_its_models_with_their_limits(
    server: AnthropicServer, editor: Editor
) -> None:
    await editor.services.catalog.settle(5.0)
    names = [model.model for model in editor.services.catalog.list_models()]
    assert names == ["claude-opus-4-8", "claude-haiku-4-5"]
    await editor.chat("Hi.")
    assert server.requests[-1]["max_tokens"] == 20_000


async def test_anthropic_is_asked_again_when_it_is_overloaded(
    server: AnthropicServer, editor: Editor
) -> None:
    server.first = [start() + sse(OVERLOADED)]
    answered = await editor.chat("Hi.")
    assert answered.text.count("Fine.") == 1
    assert len(server.requests) == 2
