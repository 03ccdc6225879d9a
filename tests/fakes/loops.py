"""A server of all vendors' protocols: it calls a tool, and then says what came back.

Every body is judged as its vendor's API would: `refusals` are the rules that it broke.
"""

import json
from typing import Any

from aiohttp import web

from tests.fakes import (
    messages_api,
    ollama_server,
    responses_server,
    strict,
    strict_gemini,
)
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
from tests.fakes.upstream import LoopbackServer, answer, delta, event, tool_answer

Body = dict[str, Any]
THOUGHT = "hm"
_EVENTS = {"Content-Type": "text/event-stream"}


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
        pieces = [start(), thinking_block(0, THOUGHT, signature="c2lnbg==")]
        if result or not body.get("tools"):
            pieces += [text_block(1, "Done."), end()]
        else:
            given = json.dumps(self.arguments)
            pieces.append(call_block(1, self.tool, given, call_id=self._new_id()))
            pieces.append(end("tool_use"))
        return await _play(request, pieces)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        body = await self._take(request, "openai_responses")
        self.refusals += responses_server.broken_rules(body)
        last, item = body["input"][-1], text_item("Done.")
        if last.get("type") != "function_call_output" and body.get("tools"):
            item = call_item(self.tool, json.dumps(self.arguments), self._new_id())
        return await _play(request, streamed(reasoning_item("c2VhbGVk", THOUGHT), item))

    def _new_id(self) -> str:
        return f"call_{len(self.requests)}"


async def _list_nothing(request: web.Request) -> web.Response:
    return web.json_response({"data": [], "models": []})


def _is_result(message: Body) -> bool:
    return bool(message["role"] == "tool")


async def _play(
    request: web.Request, pieces: Any, headers: dict[str, str] | None = None
) -> web.StreamResponse:
    out = web.StreamResponse(headers=headers or _EVENTS)
    await out.prepare(request)
    for piece in pieces:
        await out.write(piece)
    await out.write_eof()
    return out
