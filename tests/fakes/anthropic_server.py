"""A server of Anthropic's Messages API on a free loopback port, strictly."""

from typing import Any, Self

from aiohttp import web

from tests.fakes.messages_api import (
    call_block,
    end,
    start,
    text_block,
    thinking_block,
)
from tests.fakes.strict_anthropic import broken_rules

VERSION = "2023-06-01"
MODELS = [
    {"id": "claude-opus-4-8", "max_input_tokens": 400_000, "max_tokens": 20_000},
    {"id": "claude-haiku-4-5", "max_input_tokens": 200_000, "max_tokens": 64_000},
]


class AnthropicServer:
    """Thinks and calls the first tool offered; after its result it says "Fine."

    A body that breaks a rule is refused, and so is reasoning that it did not sign
    itself, or that was changed. `first` are answers that come before all others.
    """

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.requests: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.first: list[bytes] = []
        self.url = ""
        self._signed: dict[str, str] = {}  # text by signature
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        if refused := self._refuse(request):
            return refused
        body = await request.json()
        self.requests.append(body)
        if reasons := [*broken_rules(body), *self._foreign(body)]:
            self.refusals += reasons
            return _refusal("; ".join(reasons))
        out = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await out.prepare(request)
        await out.write(self.first.pop(0) if self.first else self._answer(body))
        await out.write_eof()
        return out

    def _answer(self, body: dict[str, Any]) -> bytes:
        tools, last = body.get("tools", ()), body["messages"][-1]["content"]
        if not tools or any(block["type"] == "tool_result" for block in last):
            return start() + text_block(0, "Fine.") + end()
        text, signature = f"Hm {len(self._signed)}.", f"c2ln{len(self._signed)}=="
        self._signed[signature] = text
        return b"".join(
            (
                start(),
                thinking_block(0, text[:2], text[2:], signature=signature),
                call_block(1, tools[0]["name"], '{"path": ', '"a.py"}'),
                end("tool_use"),
            )
        )

    def _foreign(self, body: dict[str, Any]) -> list[str]:
        thoughts = [
            block
            for message in body["messages"]
            for block in message["content"]
            if block["type"] == "thinking"
        ]
        return [
            "messages: Invalid `signature` in `thinking` block"
            for block in thoughts
            if self._signed.get(block["signature"]) != block["thinking"]
        ]

    async def _models(self, request: web.Request) -> web.Response:
        if refused := self._refuse(request):
            return refused
        after = request.query.get("after_id")
        ids = [model["id"] for model in MODELS]
        place = ids.index(after) + 1 if after else 0
        more = place + 1 < len(MODELS)
        page = {"data": MODELS[place : place + 1], "has_more": more}
        return web.json_response({**page, "last_id": ids[place]})

    def _refuse(self, request: web.Request) -> web.Response | None:
        if request.headers.get("anthropic-version") != VERSION:
            return _refusal("anthropic-version: header is required")
        if request.headers.get("x-api-key", "") != self.key:
            return _refusal("invalid x-api-key", 401)
        return None


def _refusal(message: str, status: int = 400) -> web.Response:
    kind = "authentication_error" if status == 401 else "invalid_request_error"
    error = {"type": kind, "message": message}
    return web.json_response({"type": "error", "error": error}, status=status)
