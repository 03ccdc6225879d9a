"""Clients of the daemon: an agent that keeps nodes or drops them, an SDK, uploads."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import pytest

from tests.fakes.bodies import exchange, image_node, result_node, text_node
from tests.fakes.daemon import Answer, Editor

_TOOL = {"name": "read", "description": "", "input_schema_json": '{"type":"object"}'}
_THINKING = 8  # the node with the model's reasoning
_MOST_STEPS = 8


class Keeping(StrEnum):
    """What a client does with the nodes of an answer."""

    ALL = "keeps"
    WITHOUT_THINKING = "drops"
    BACKWARDS = "reorders"


class AgentClient:
    """One conversation: asks a model, runs the tools that it calls, asks again."""

    def __init__(
        self, tools: Sequence[dict[str, Any]] = (_TOOL,), *, picture: bool = False
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self._tools = list(tools)
        self._picture = picture  # in the first question
        self._results: list[dict[str, Any]] = []  # of tools, for the next step

    async def step(
        self, editor: Editor, model: str, keeping: Keeping = Keeping.ALL
    ) -> Answer:
        """Ask a question, or tell the results of tools; the next tools run at once."""
        words = "" if self._results else f"Question {len(self.history)}?"
        nodes = self._results or self._question(words)
        answer = await editor.chat(
            words,
            nodes=nodes,
            model=model,
            mode="AGENT",
            chat_history=self.history,
            tool_definitions=self._tools,
        )
        past = exchange(words, answer.text, nodes=nodes)
        past["response_nodes"] = _kept(answer.nodes, keeping)
        self.history.append(past)
        self._results = [result_node(use["tool_use_id"]) for use in answer.tool_uses]
        return answer

    async def turn(
        self, editor: Editor, model: str, keeping: Keeping = Keeping.ALL
    ) -> Answer:
        """Ask a question, and go on until the model calls no tool."""
        for _ in range(_MOST_STEPS):
            answer = await self.step(editor, model, keeping)
            assert "error" not in answer.last, (model, answer.last["error"])
            if not answer.tool_uses:
                return answer
        raise AssertionError(f"{model} never stops calling tools")

    def _question(self, words: str) -> list[dict[str, Any]]:
        picture = [image_node()] if self._picture and not self.history else []
        return [text_node(words), *picture]


def _kept(nodes: list[dict[str, Any]], keeping: Keeping) -> list[dict[str, Any]]:
    match keeping:
        case Keeping.ALL:
            return nodes
        case Keeping.WITHOUT_THINKING:
            return [node for node in nodes if node["type"] != _THINKING]
        case Keeping.BACKWARDS:
            return nodes[::-1]


async def ask(editor: Editor, prompt: str) -> str:
    """Ask through the SDK, which blocks, in a thread."""
    api_client: Any = pytest.importorskip(
        "auggie_sdk.context.internal.api_client", reason="auggie-sdk is not installed"
    )
    options = api_client.ContextAPIClientOptions(
        api_key=editor.token, api_url=editor.daemon.url
    )
    client: Any = api_client.ContextAPIClient(options)
    reply: str = await asyncio.to_thread(client.chat, prompt)
    return reply


MISSING = "0" * 64


def blob(path: str, content: str) -> dict[str, str]:
    """Return a file version under its right name."""
    name = hashlib.sha256(path.encode() + content.encode()).hexdigest()
    return {"blob_name": name, "path": path, "content": content}


async def upload(editor: Editor, *blobs: Any) -> list[str]:
    """Upload file versions; returns the names that the daemon gives back."""
    reply = await editor.post("/batch-upload", {"blobs": list(blobs)})
    assert reply.status == 200
    names: list[str] = reply.json["blob_names"]
    return names


async def indexed(editor: Editor, *blobs: Mapping[str, str]) -> list[str]:
    """Upload file versions, and ask as clients do until they can be found."""
    names = await upload(editor, *blobs)
    await until_indexed(editor, names)
    return names


async def until_indexed(editor: Editor, names: list[str]) -> None:
    """Ask as clients do until uploaded file versions can be found."""
    while True:
        reply = await editor.post("/find-missing", {"mem_object_names": names})
        assert reply.json["unknown_memory_names"] == []
        if not reply.json["nonindexed_blob_names"]:
            return
