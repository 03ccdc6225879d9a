"""A server of all vendors' protocols: it calls a tool, and then says what came back.

Every body is judged as its vendor's API would: `refusals` are the rules that it broke.
"""

import json
from collections.abc import Iterator
from typing import Any, Self

from aiohttp import web

from byok.core.wire.sse import encode_named
from tests.fakes import (
    messages_api,
    ollama_server,
    responses_server,
    strict,
    strict_gemini,
)
from tests.fakes.ollama_server import call_line, done_line, text_line
from tests.fakes.upstream import DONE, delta, event

Body = dict[str, Any]
THOUGHT = "hm"
_EVENTS = {"Content-Type": "text/event-stream"}


class LoopServer:
    """Answers a question with a call of `tool`, and a result with text."""

    def __init__(self, tool: str = "view", arguments: Body | None = None) -> None:
        self.tool = tool
        self.arguments = {"path": "ä.py"} if arguments is None else arguments
        self.requests: list[tuple[str, Body]] = []
        self.refusals: list[str] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_post("/v1/responses", self._responses)
        app.router.add_post("/v1beta/models/{call:.+}", self._gemini)
        app.router.add_post("/api/chat", self._ollama)
        app.router.add_get("/{list:.+}", _list_nothing)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

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
            chunks += [delta(content="Done"), delta(content="."), delta("stop"), DONE]
        else:
            given = {"name": self.tool, "arguments": json.dumps(self.arguments)}
            call = {"index": 0, "id": self._new_id(), "type": "function"}
            chunks.append(delta(tool_calls=[{**call, "function": given}]))
            chunks += [delta("tool_calls"), DONE]
        return await _play(request, chunks)

    async def _ollama(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "ollama")
        self.refusals += ollama_server.broken_rules(body)
        lines = [text_line("", thinking=THOUGHT)]
        if _is_result(body["messages"][-1]) or not body.get("tools"):
            lines += [text_line("Done"), text_line(".")]
        else:
            lines.append(call_line(self.tool, self.arguments, len(self.requests)))
        written = [json.dumps(line).encode() + b"\n" for line in (*lines, done_line())]
        return await _play(request, written, {"Content-Type": "application/x-ndjson"})

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
        return await _play(request, [event(chunk)])

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "anthropic")
        self.refusals += messages_api.broken_rules(body)
        content = body["messages"][-1]["content"]
        result = isinstance(content, list) and content[0]["type"] == "tool_result"
        if result or not body.get("tools"):
            block: Body = {"type": "text", "text": ""}
            end = "end_turn"
            deltas: list[Body] = [{"type": "text_delta", "text": "Done."}]
        else:
            block = {"type": "tool_use", "id": self._new_id(), "name": self.tool}
            block, end = {**block, "input": {}}, "tool_use"
            given = json.dumps(self.arguments)
            deltas = [{"type": "input_json_delta", "partial_json": given}]
        return await _play(request, map(encode_named, _message(block, deltas, end)))

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "openai_responses")
        self.refusals += responses_server.broken_rules(body)
        last, number = body["input"][-1], len(self.requests)
        if last.get("type") == "function_call_output" or not body.get("tools"):
            part = {"type": "output_text", "text": "Done.", "annotations": []}
            item = {"type": "message", "role": "assistant", "content": [part]}
        else:
            given = json.dumps(self.arguments)
            item = {"type": "function_call", "name": self.tool, "arguments": given}
            item["call_id"] = self._new_id()
        item |= {"id": f"item_{number}", "status": "completed"}
        return await _play(request, map(encode_named, _response(item)))

    def _new_id(self) -> str:
        return f"call_{len(self.requests)}"


async def _list_nothing(request: web.Request) -> web.Response:
    return web.json_response({"data": [], "models": []})


def _is_result(message: Body) -> bool:
    return bool(message["role"] == "tool")


def _message(block: Body, deltas: list[Body], end: str) -> Iterator[Body]:
    usage = {"input_tokens": 9, "output_tokens": 3}
    message = {"id": "m", "type": "message", "role": "assistant", "content": []}
    yield {"type": "message_start", "message": {**message, "usage": usage}}
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    yield {"type": "content_block_start", "index": 0, "content_block": thinking}
    for piece in (
        {"type": "thinking_delta", "thinking": THOUGHT},
        {"type": "signature_delta", "signature": "c2lnbg=="},
    ):
        yield {"type": "content_block_delta", "index": 0, "delta": piece}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "content_block_start", "index": 1, "content_block": block}
    for piece in deltas:
        yield {"type": "content_block_delta", "index": 1, "delta": piece}
    yield {"type": "content_block_stop", "index": 1}
    stop = {"stop_reason": end, "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def _response(item: Body) -> Iterator[Body]:
    response = {"id": "resp_1", "object": "response", "status": "in_progress"}
    yield {"type": "response.created", "response": {**response, "output": []}}
    for place, whole in enumerate(
        (
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": THOUGHT}],
                "encrypted_content": "c2VhbGVk",
            },
            item,
        )
    ):
        for kind in ("added", "done"):
            name = f"response.output_item.{kind}"
            yield {"type": name, "output_index": place, "item": whole}
    usage = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


async def _play(
    request: web.Request, pieces: Any, headers: dict[str, str] | None = None
) -> web.StreamResponse:
    out = web.StreamResponse(headers=headers or _EVENTS)
    await out.prepare(request)
    for piece in pieces:
        await out.write(piece)
    await out.write_eof()
    return out
