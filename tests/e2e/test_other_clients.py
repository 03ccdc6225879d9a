"""The SDKs of OpenAI and Anthropic against upstreams of every dialect, with tools."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.fakes import (
    messages_api,
    ollama_server,
    responses_server,
    strict,
    strict_gemini,
)
from tests.fakes.clients import openai_client
from tests.fakes.daemon import running
from tests.fakes.messages_api import (
    call_block,
    end,
    start,
    text_block,
    thinking_block,
)
from tests.fakes.ollama_server import call_line, done_line, text_line
from tests.fakes.responses_server import (
    call_item,
    reasoning_item,
    streamed,
    text_item,
)
from tests.fakes.upstream import (
    LoopbackServer,
    Script,
    answer,
    delta,
    event,
    play,
    tool_answer,
)

# A server of all vendors' protocols: it calls a tool, and then says what came back.
#
# Every body is judged as its vendor's API would: `refusals` are the rules that it
# broke.


Body = dict[str, Any]
THOUGHT = "hm"
NDJSON = {"Content-Type": "application/x-ndjson"}


class LoopServer(LoopbackServer):
    """Answers a question with a call of `tool`, and a result with text."""

    def __init__(self, tool: str = "view", arguments: Body | None = None) -> None:
        self.tool = tool
        self.arguments = {"path": "ä.py"} if arguments is None else arguments
        self.requests: list[tuple[str, Body]] = []
        self.refusals: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/chat/completions", self._chat),
            web.post("/v1/messages", self._messages),
            web.post("/v1/responses", self._responses),
            web.post("/v1beta/models/{call:.+}", self._gemini),
            web.post("/api/chat", self._ollama),
            web.get("/{list:.+}", _list_nothing),
        ]

    def settings(self, **paths: str) -> Body:
        """Return settings with an upstream for each dialect, by the path of its API."""
        return {
            "upstreams": {
                name: {
                    "type": "openai_compatible",
                    "dialect": name,
                    "base_url": self.url + path,
                    "models": ["m"],
                }
                for name, path in paths.items()
            }
        }

    async def _take(self, request: web.Request, kind: str) -> Body:
        body: Body = await request.json()
        self.requests.append((kind, body))
        return body

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "openai_chat")
        self.refusals += strict.broken_rules(body, spoken=["reasoning_content"])
        chunks = [delta(reasoning_content=THOUGHT)]
        if _is_result(body["messages"][-1]) or not body.get("tools"):
            chunks += answer("Done", ".")
        else:
            chunks += tool_answer(self.tool, json.dumps(self.arguments), self._new_id())
        return await play(request, Script(chunks))

    async def _ollama(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "ollama")
        self.refusals += ollama_server.broken_rules(body)
        lines = [text_line("", thinking=THOUGHT)]
        if _is_result(body["messages"][-1]) or not body.get("tools"):
            lines += [text_line("Done"), text_line(".")]
        else:
            lines.append(call_line(self.tool, self.arguments, len(self.requests)))
        written = [json.dumps(line).encode() + b"\n" for line in (*lines, done_line())]
        return await play(request, Script(written, headers=NDJSON))

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "gemini")
        model = request.match_info["call"].partition(":")[0]
        self.refusals += strict_gemini.broken_rules(body, model)
        last = body["contents"][-1]["parts"]
        parts: list[Body] = [{"text": THOUGHT, "thought": True}]
        if "functionResponse" in last[0] or not body.get("tools"):
            parts += [{"text": "Done"}, {"text": "."}]
        else:
            call = {"name": self.tool, "args": self.arguments}
            parts.append({"functionCall": call, "thoughtSignature": "c2lnbg=="})
        content = {"role": "model", "parts": parts}
        chunk = {"candidates": [{"content": content, "finishReason": "STOP"}]}
        return await play(request, Script([event(chunk)]))

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "anthropic")
        self.refusals += messages_api.broken_rules(body)
        content = body["messages"][-1]["content"]
        result = isinstance(content, list) and content[0]["type"] == "tool_result"
        pieces = [start(), thinking_block(0, THOUGHT, signature="c2lnbg==")]
        if result or not body.get("tools"):
            pieces += [text_block(1, "Done."), end()]
        else:
            given = json.dumps(self.arguments)
            pieces.append(call_block(1, self.tool, given, call_id=self._new_id()))
            pieces.append(end("tool_use"))
        return await play(request, Script(pieces))

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "openai_responses")
        self.refusals += responses_server.broken_rules(body)
        last, item = body["input"][-1], text_item("Done.")
        if last.get("type") != "function_call_output" and body.get("tools"):
            item = call_item(self.tool, json.dumps(self.arguments), self._new_id())
        return await play(
            request, Script(streamed(reasoning_item("c2VhbGVk", THOUGHT), item))
        )

    def _new_id(self) -> str:
        return f"call_{len(self.requests)}"


async def _list_nothing(request: web.Request) -> web.Response:
    return web.json_response({"data": [], "models": []})


def _is_result(message: Body) -> bool:
    return bool(message["role"] == "tool")


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
                return str(got.content[-1].text)
            said = [
                {"type": "tool_result", "tool_use_id": call.id, "content": "ok"}
                for call in calls
            ]


CLIENTS: dict[str, tuple[Any, Any]] = {
    "openai_chat": (openai_client, Completions),
    "openai_responses": (openai_client, Responses),
    "anthropic": (anthropic_client, Messages),
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
        client_of(editor.daemon.url, editor.token) as sdk,
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
        anthropic_client(editor.daemon.url, editor.token) as sdk,
    ):
        seat = Messages(sdk, "byok:anthropic:m", streams=True)
        assert await seat.turn("Look.") == "Done."
    sent = [body for _, body in server.requests]
    assert [body["thinking"]["budget_tokens"] for body in sent] == [2000, 2000]
    assert sent[1]["messages"] == seat.messages[:3]
    assert sent[1]["messages"][1]["content"][0]["signature"] == "c2lnbg=="
