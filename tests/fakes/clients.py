"""Clients of the daemon: an agent, the SDKs, uploads, and who searches code."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any

import pytest

from tests.fakes.bodies import exchange, image_node, result_node, text_node, tool
from tests.fakes.daemon import Answer, Editor
from tests.fakes.patience import PATIENCE, until

_THINKING = 8  # the node with the model's reasoning
_MOST_STEPS = 60


class Keeping(StrEnum):
    """What a client does with the nodes of an answer."""

    ALL = "keeps"
    WITHOUT_THINKING = "drops"
    BACKWARDS = "reorders"


class AgentClient:
    """One conversation: asks a model, runs the tools that it calls, asks again.

    `run` says what the result of a tool has, by the number of the call; `fields` go
    with each request.
    """

    def __init__(
        self,
        tools: Sequence[dict[str, Any]] = (tool("read"),),
        *,
        picture: bool = False,
        run: Callable[[int], dict[str, Any]] = lambda number: {},
        **fields: Any,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.fields = {"mode": "AGENT", "tool_definitions": [*tools], **fields}
        self._run = run
        self._calls = 0
        self._picture = picture  # in the first question
        self._results: list[dict[str, Any]] = []  # of tools, for the next step

    async def step(
        self,
        editor: Editor,
        model: str | None = None,
        keeping: Keeping = Keeping.ALL,
        words: str = "",
    ) -> Answer:
        """Ask a question, or tell the results of tools; the next tools run at once."""
        asked = words or f"Question {len(self.history)}?"
        words = "" if self._results else asked
        nodes = self._results or self._question(words)
        answer = await editor.chat(
            words,
            nodes=nodes,
            model=model,
            chat_history=self.history,
            **self.fields,
        )
        past = exchange(words, answer.text, nodes=nodes)
        past["response_nodes"] = _kept(answer.nodes, keeping)
        self.history.append(past)
        self._results = [self._result(use["tool_use_id"]) for use in answer.tool_uses]
        return answer

    async def turn(
        self,
        editor: Editor,
        model: str | None = None,
        keeping: Keeping = Keeping.ALL,
        words: str = "",
    ) -> Answer:
        """Ask a question, and go on until the model calls no tool."""
        for _ in range(_MOST_STEPS):
            answer = await self.step(editor, model, keeping, words)
            assert "error" not in answer.last, (model, answer.last["error"])
            if not answer.tool_uses:
                return answer
        raise AssertionError(f"{model} never stops calling tools")

    def _result(self, call_id: str) -> dict[str, Any]:
        self._calls += 1
        return result_node(call_id, **self._run(self._calls))

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


@asynccontextmanager
async def openai_client(url: str, token: str, **options: Any) -> AsyncIterator[Any]:
    """OpenAI's client; it never tries twice nor asks a proxy, unless `options` say."""
    openai: Any = pytest.importorskip("openai", reason="its client is not installed")
    usual = {"max_retries": 0, "timeout": PATIENCE}
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        base_url=f"{url}/v1", api_key=token, http_client=http, **{**usual, **options}
    ) as client:
        yield client


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


async def until_complete(editor: Editor) -> None:
    """Wait until all folders that the daemon follows are indexed."""

    async def is_complete() -> bool:
        told = (await editor.post("/byok/index/status")).json
        phases = {space["phase"] for space in told["workspaces"]}
        return bool(told["state"] == "indexed" and phases == {"complete"})

    await until(is_complete)


async def find_code(
    editor: Editor, question: Any, *, window: str = "", **fields: Any
) -> str:
    """Return what an agent is told that asks for code, in one of its windows."""
    body = {"information_request": question, **fields}
    headers = {"X-Request-Session-Id": window} if window else {}
    answer = await editor.post("/agents/codebase-retrieval", body, headers=headers)
    assert answer.status == 200
    text = answer.json["formatted_retrieval"]
    assert isinstance(text, str)
    return text
