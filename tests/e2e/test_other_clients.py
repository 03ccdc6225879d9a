"""The SDKs of OpenAI and Anthropic against upstreams of every dialect, with tools."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fakes.daemon import Editor, running
from tests.fakes.loops import LoopServer

APIS = {
    "openai_chat": "/v1",
    "gemini": "/v1beta",
    "ollama": "",
    "anthropic": "/v1",
    "openai_responses": "/v1",
}
# A server of Responses has Chat Completions beside them.
PASSED_ON = {"openai_chat": {"openai_responses"}}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FUNCTION = {"name": "view", "description": "See a file.", "parameters": SCHEMA}
TURNS = ("Look.", "Again.", "Once more.")
Turn = Callable[[str, str], Awaitable[str]]


@asynccontextmanager
async def openai_of(editor: Editor) -> AsyncIterator[Any]:
    openai: Any = pytest.importorskip("openai", reason="its client is not installed")
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with openai.AsyncOpenAI(
        base_url=f"{editor.daemon.url}/v1",
        api_key=editor.token,
        max_retries=0,
        http_client=http,
    ) as client:
        yield client


@asynccontextmanager
async def anthropic_of(editor: Editor) -> AsyncIterator[Any]:
    anthropic: Any = pytest.importorskip("anthropic", reason="no client is installed")
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(
        base_url=editor.daemon.url,
        api_key=editor.token,
        max_retries=0,
        http_client=http,
    ) as client:
        yield client


class Completions:
    """An agent with Chat Completions that keeps all that it gets."""

    def __init__(self, client: Any, model: str, *, streams: bool) -> None:
        self.client, self.streams = client, streams
        self.asked: dict[str, Any] = {
            "model": model,
            "tools": [{"type": "function", "function": FUNCTION}],
        }
        self.messages: list[Any] = [{"role": "system", "content": "Be brief."}]

    async def turn(self, words: str) -> str:
        self.messages.append({"role": "user", "content": words})
        while True:
            asked = {**self.asked, "messages": self.messages}
            if self.streams:
                async with self.client.chat.completions.stream(**asked) as stream:
                    got = await stream.get_final_completion()
            else:
                got = await self.client.chat.completions.create(**asked)
            said = got.choices[0].message
            self.messages.append(said.to_dict(exclude_none=True))
            if not said.tool_calls:
                return str(said.content)
            for call in said.tool_calls:
                result = {"role": "tool", "tool_call_id": call.id, "content": "ok"}
                self.messages.append(result)


class Responses:
    """An agent with Responses that keeps all that it gets."""

    def __init__(self, client: Any, model: str, *, streams: bool) -> None:
        self.client, self.streams = client, streams
        self.asked: dict[str, Any] = {
            "model": model,
            "tools": [{"type": "function", "strict": False, **FUNCTION}],
            "instructions": "Be brief.",
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        self.items: list[Any] = []

    async def turn(self, words: str) -> str:
        self.items.append({"role": "user", "content": words})
        while True:
            asked = {**self.asked, "input": self.items}
            if self.streams:
                async with self.client.responses.stream(**asked) as stream:
                    got = await stream.get_final_response()
            else:
                got = await self.client.responses.create(**asked)
            self.items += [item.to_dict(exclude_none=True) for item in got.output]
            calls = [item for item in got.output if item.type == "function_call"]
            if not calls:
                return str(got.output_text)
            for call in calls:
                result = {"type": "function_call_output", "call_id": call.call_id}
                self.items.append({**result, "output": "ok"})


class Messages:
    """An agent with Messages that keeps all that it gets."""

    def __init__(self, client: Any, model: str, *, streams: bool) -> None:
        self.client, self.streams = client, streams
        tool = {"name": "view", "description": "See.", "input_schema": SCHEMA}
        self.asked: dict[str, Any] = {
            "model": model,
            "tools": [tool],
            "system": "Be brief.",
            "max_tokens": 9000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        }
        self.messages: list[Any] = []

    async def turn(self, words: str) -> str:
        said: list[Any] = [{"type": "text", "text": words}]
        while True:
            self.messages.append({"role": "user", "content": said})
            asked = {**self.asked, "messages": self.messages}
            if self.streams:
                async with self.client.messages.stream(**asked) as stream:
                    got = await stream.get_final_message()
            else:
                got = await self.client.messages.create(**asked)
            content = [block.to_dict(exclude_none=True) for block in got.content]
            self.messages.append({"role": "assistant", "content": content})
            calls = [block for block in got.content if block.type == "tool_use"]
            if not calls:
                return str(got.content[-1].text)
            said = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
                for call in calls
            ]


CLIENTS: dict[str, tuple[Any, Any]] = {
    "openai_chat": (openai_of, Completions),
    "openai_responses": (openai_of, Responses),
    "anthropic": (anthropic_of, Messages),
}


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_other_clients_agents_work_on_every_other_dialect(
    client: str, *, streams: bool
) -> None:
    client_of, agent = CLIENTS[client]
    forwarded = {client} | PASSED_ON.get(client, set())
    others = {api: path for api, path in APIS.items() if api not in forwarded}
    async with (
        LoopServer() as server,
        running(server.settings(**others)) as editor,
        client_of(editor) as sdk,
    ):
        for api in others:
            seat = agent(sdk, f"byok:{api}:m", streams=streams)
            said = [await seat.turn(words) for words in TURNS]
            assert said == ["Done."] * 3, api
    assert server.refusals == []
    kinds = [kind for kind, _ in server.requests]
    assert {kind: kinds.count(kind) for kind in others} == dict.fromkeys(others, 6)


@pytest.mark.slow
async def test_other_clients_messages_pass_unchanged_to_an_api_of_messages() -> None:
    async with (
        LoopServer() as server,
        running(server.settings(anthropic="/v1")) as editor,
        anthropic_of(editor) as sdk,
    ):
        seat = Messages(sdk, "byok:anthropic:m", streams=True)
        assert await seat.turn("Look.") == "Done."
    sent = [body for _, body in server.requests]
    assert [body["thinking"]["budget_tokens"] for body in sent] == [2000, 2000]
    assert sent[1]["messages"] == seat.messages[:3]
    assert sent[1]["messages"][1]["content"][0]["signature"] == "c2lnbg=="
