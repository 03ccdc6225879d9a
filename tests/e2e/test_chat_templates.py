"""Agents on local servers whose chat templates refuse some conversations.

Tools are interrupted, give pictures back and are called in parallel. Each template
refuses a conversation once for each thing that it does not take: what byok learned then
outlasts the daemon.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.fakes.bodies import image_node, result_node, text_node
from tests.fakes.chat_templates import SERVERS, TEMPLATES, TemplateServer
from tests.fakes.clients import AgentClient
from tests.fakes.daemon import Editor, running

TURNS = 10
INTERRUPTED, PICTURED = (2, 6), 4
# The most that each template may refuse, in all of its conversation.
MOST = {"mistral": 2, "ministral": 1, "llama": 1, "gemma": 3, "gpt_oss": 1}
SHOT = {
    "content_nodes": [
        {"type": 1, "text_content": "shot"},
        {"type": 2, "image_content": image_node()["image_node"]},
    ]
}
TOOL = {"name": "view", "description": "", "input_schema_json": '{"type": "object"}'}


class Person(AgentClient):
    """A user who stops tools in some turns, and whose tools make a screenshot."""

    async def run(self, editor: Editor, model: str, turns: range) -> None:
        """Ask a question in each turn, and go on until the model calls no tool."""
        for turn in turns:
            answer = await self.step(editor, model)
            assert "error" not in answer.last, (model, turn, answer.last["error"])
            assert answer.tool_uses, (model, turn, answer.text)
            if turn in INTERRUPTED:
                self._results = []
                continue
            ids = [use["tool_use_id"] for use in answer.tool_uses]
            more: dict[str, Any] = SHOT if turn == PICTURED else {}
            self._results = [result_node(call_id, "done", **more) for call_id in ids]
            answer = await self.step(editor, model)
            assert "error" not in answer.last, (model, turn, answer.last["error"])
            assert "Answer" in answer.text, (model, turn, answer.text)

    def _question(self, words: str) -> list[dict[str, Any]]:
        return [text_node(words)]


@pytest.fixture
async def servers() -> AsyncIterator[Mapping[str, TemplateServer]]:
    async with AsyncExitStack() as stack:
        yield {
            f"{template}-{server}".replace("_", "-"): await stack.enter_async_context(
                TemplateServer(template, server)
            )
            for template in TEMPLATES
            for server in SERVERS
        }


@pytest.mark.slow
async def test_agents_stay_alive_with_the_templates_of_local_models(
    servers: Mapping[str, TemplateServer],
) -> None:
    settings = {
        "upstreams": {
            name: {"base_url": server.url, "models": ["m"], "timeout": 20}
            for name, server in servers.items()
        }
    }
    people = {name: Person([TOOL]) for name in servers}
    learned: dict[str, int] = {}
    for turns in (range(TURNS - 3), range(TURNS - 3, TURNS)):
        learned = {name: len(server.refusals) for name, server in servers.items()}
        async with running(settings) as editor:
            await asyncio.gather(
                *(
                    person.run(editor, f"byok:{name}:m", turns)
                    for name, person in people.items()
                )
            )
    for name, server in servers.items():
        most = MOST[name.rpartition("-")[0].replace("-", "_")]
        assert 0 < len(server.refusals) <= most, (name, server.refusals)
        assert len(server.refusals) == learned[name], (name, "repeated after a restart")
        assert server.broken == [], name
