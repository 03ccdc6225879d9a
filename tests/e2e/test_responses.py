"""Agents on models that reason in Responses, from the first step to the last."""

from typing import Any

import pytest

from tests.fakes.clients import AgentClient
from tests.fakes.daemon import running
from tests.fakes.responses_server import ResponsesServer

KEY = {"BYOK_KEY_AI": "k"}


def settings(url: str, **fields: Any) -> dict[str, Any]:
    section = {"type": "openai", "base_url": url, "timeout": 5, **fields}
    return {"upstreams": {"ai": section}}


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("gpt-x", {}),
        ("gpt-x", {"dialect": "openai_chat"}),  # its refusal names the other API
        ("gpt-5.6", {}),
        ("gpt-5.6", {"type": "openai_compatible"}),  # as its family needs
    ],
)
async def test_responses_keep_reasoning_and_phases_of_an_agent(
    model: str, fields: dict[str, str]
) -> None:
    agent = AgentClient()
    async with (
        ResponsesServer() as server,
        running(settings(server.url, **fields), environ=KEY) as editor,
    ):
        answers = [await agent.step(editor, f"byok:ai:{model}") for _ in range(4)]
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
        config = settings(server.url, type=kind)
        async with running(config, environ=KEY) as editor:
            answer = await AgentClient().step(editor, "byok:ai:gpt-x")
            again = await AgentClient().step(editor, "byok:ai:gpt-x")
    assert answer.text == again.text == "By chat."
    assert server.paths == ["responses", "chat/completions", "chat/completions"]
