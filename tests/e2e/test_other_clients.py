"""The SDKs of OpenAI and Anthropic against upstreams of every dialect, with tools."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import pytest

from tests.fakes.clients import openai_client
from tests.fakes.daemon import Editor, running
from tests.fakes.messages_api import AnthropicAgent
from tests.fakes.strict_gemini import GeminiServer
from tests.fakes.strict_vendors import OllamaAgent, ResponsesAgent, StrictVendor

# Servers of all vendors' protocols, and a model of each. They call a tool after a
# question and answer after its result; each judges what it gets as its vendor does.
SERVERS: dict[str, tuple[Callable[[], Any], str]] = {
    "openai_chat": (partial(StrictVendor, "any"), "m"),
    "gemini": (GeminiServer, "m"),
    "ollama": (OllamaAgent, "coder"),
    "anthropic": (AnthropicAgent, "m"),
    "openai_responses": (ResponsesAgent, "m"),
}
# A server of Responses has Chat Completions beside them.
PASSED_ON = {"openai_chat": {"openai_responses"}}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
FUNCTION = {"name": "view", "description": "See a file.", "parameters": SCHEMA}
TURNS = ("Look.", "Again.", "Once more.")
Turn = Callable[[str, str], Awaitable[str]]


@asynccontextmanager
async def anthropic_client(url: str, token: str) -> AsyncIterator[Any]:
    anthropic: Any = pytest.importorskip("anthropic", reason="no client is installed")
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
    async with anthropic.AsyncAnthropic(
        base_url=url,
        api_key=token,
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
                texts = [block.text for block in got.content if block.type == "text"]
                return "".join(texts)
            said = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
                for call in calls
            ]


CLIENTS: dict[str, tuple[Any, Any]] = {
    "openai_chat": (openai_client, Completions),
    "openai_responses": (openai_client, Responses),
    "anthropic": (anthropic_client, Messages),
}


@asynccontextmanager
async def served(*apis: str) -> AsyncIterator[tuple[Editor, dict[str, Any]]]:
    """Run a daemon with an upstream for each dialect; give it and the servers."""
    async with AsyncExitStack() as stack:
        servers = {
            api: await stack.enter_async_context(SERVERS[api][0]()) for api in apis
        }
        upstreams = {
            api: {
                "type": "openai_compatible",
                "dialect": api,
                "base_url": server.url,
                "models": [SERVERS[api][1]],
            }
            for api, server in servers.items()
        }
        settings = {"upstreams": upstreams}
        yield await stack.enter_async_context(running(settings)), servers


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_other_clients_agents_work_on_every_other_dialect(
    client: str, *, streams: bool
) -> None:
    client_of, agent = CLIENTS[client]
    others = SERVERS.keys() - {client} - PASSED_ON.get(client, set())
    async with (
        served(*sorted(others)) as (editor, servers),
        client_of(editor.daemon.url, editor.token) as sdk,
    ):
        for api, server in servers.items():
            seat = agent(sdk, f"byok:{api}:{SERVERS[api][1]}", streams=streams)
            for words in TURNS:
                said = await seat.turn(words)
                assert said.startswith(("Answer", "Done.", "Fine.")), (api, said)
            assert server.refusals == [], api
            assert len(server.requests) == 2 * len(TURNS), api


@pytest.mark.slow
async def test_other_clients_messages_pass_unchanged_to_an_api_of_messages() -> None:
    async with (
        served("anthropic") as (editor, servers),
        anthropic_client(editor.daemon.url, editor.token) as sdk,
    ):
        seat = Messages(sdk, "byok:anthropic:m", streams=True)
        assert await seat.turn("Look.") == "Done."
    sent = servers["anthropic"].requests
    assert [body["thinking"]["budget_tokens"] for body in sent] == [2000, 2000]
    assert sent[1]["messages"] == seat.messages[:3]
    assert sent[1]["messages"][1]["content"][0]["signature"]
