"""An Ollama in memory: loads models with the window of a request, and cuts prompts.

Sources: Ollama's API reference and the source of its server.
"""

import json
from typing import Any, Self

from aiohttp import web

from tests.fakes.strict_ollama import broken_prompt_rules, broken_rules


class OllamaModel:
    """A model of the fake: what `/api/show` tells of it."""

    def __init__(
        self,
        *capabilities: str,
        length: int = 131_072,
        num_ctx: int = 0,
        heads: int = 8,
    ) -> None:
        self.length, self.num_ctx = length, num_ctx
        self.shown = {
            "capabilities": ["completion", *capabilities],
            "parameters": f"num_ctx    {num_ctx}" if num_ctx else "",
            "model_info": {
                "general.architecture": "qwen3",
                "qwen3.context_length": length,
                "qwen3.block_count": 32,
                "qwen3.embedding_length": 4096,
                "qwen3.attention.head_count": 32,
                "qwen3.attention.head_count_kv": heads,
            },
        }


class OllamaServer:
    """Serves Ollama's own API and the chats of its compatible one.

    A token has `ratio` bytes of the messages and tools. Answers are scripts, lists of
    lines without their last one; the last script is repeated. `memory` is the largest
    window that fits into it, 0 for any.
    """

    def __init__(self, *, default: int = 4096, ratio: float = 3.5) -> None:
        self.default, self.ratio, self.memory = default, ratio, 0
        self.models = {"coder:latest": OllamaModel("tools", "thinking")}
        self.scripts: list[list[dict[str, Any]]] = [[text_line("Fine.")]]
        self.requests: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.cuts: list[tuple[int, int]] = []  # tokens of a prompt, and what was read
        self.loads: list[int] = []
        self.loaded: dict[str, int] = {}
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/api/tags", self._tags)
        app.router.add_get("/v1/models", self._listed)
        app.router.add_get("/api/ps", self._ps)
        app.router.add_post("/api/show", self._show)
        app.router.add_post("/api/chat", self._chat)
        app.router.add_post("/api/generate", self._generate)
        app.router.add_post("/v1/chat/completions", self._compatible)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    def tokens(self, messages: Any, tools: Any) -> int:
        """Count the tokens of a prompt."""
        said = json.dumps([messages, tools], ensure_ascii=False)
        return int(len(said.encode()) / self.ratio)

    def _load(self, name: str, asked: int) -> int:
        model = self.models[name]
        size = min(asked or model.num_ctx or self.default, model.length)
        if self.memory and size > self.memory:
            raise web.HTTPInternalServerError(
                text=json.dumps(
                    {"error": "model requires more system memory (9.1 GiB) than is "
                     "available (5.2 GiB)"}
                ),
                content_type="application/json",
            )  # fmt: skip
        if self.loaded.get(name) != size:
            self.loads.append(size)
        self.loaded[name] = size
        return size

    def _read(self, body: dict[str, Any], size: int) -> int:
        """Return how many tokens are read; what exceeds the window is cut."""
        messages, tools = [*body["messages"]], body.get("tools")
        whole = count = self.tokens(messages, tools)
        while count > size and len(messages) > 1:
            first = 1 if messages[0]["role"] == "system" and len(messages) > 2 else 0
            del messages[first]
            count = self.tokens(messages, tools)
        if whole > size:
            self.cuts.append((whole, min(count, size)))
        return min(count, size)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        name = _full(body["model"])
        if name not in self.models:
            return _refused(f"model '{body['model']}' not found", 404)
        if rules := broken_rules(body):
            self.refusals += rules
            return _refused("; ".join(rules))
        able = self.models[name].shown["capabilities"]
        if body.get("tools") and "tools" not in able:
            return _refused(f"registry.ollama.ai/library/{name} does not support tools")
        if body.get("think") and "thinking" not in able:
            return _refused(f'"{name}" does not support thinking')
        size = self._load(name, body.get("options", {}).get("num_ctx", 0))
        count = self.tokens(body["messages"], body.get("tools"))
        if count > size and body.get("truncate") is False:
            return _refused(
                f"request ({count} tokens) exceeds the available context size "
                f"({size} tokens), try increasing it"
            )
        return await self._play(request, name, self._read(body, size))

    async def _play(
        self, request: web.Request, name: str, tokens: int
    ) -> web.StreamResponse:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        last = {**done_line(tokens), "model": name}
        out = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await out.prepare(request)
        for line in (*script, last):
            raw = json.dumps({"model": name, **line}, ensure_ascii=False)
            await out.write(raw.encode() + b"\n")
        await out.write_eof()
        return out

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        name = _full(body["model"])
        if rules := broken_prompt_rules(body):
            self.refusals += rules
            return _refused("; ".join(rules))
        if (
            body.get("suffix")
            and "insert" not in self.models[name].shown["capabilities"]
        ):
            return _refused(f"{name} does not support insert")
        self._load(name, body.get("options", {}).get("num_ctx", 0))
        script, self.scripts = self.scripts, [[{"response": "x + 1", "done": False}]]
        try:
            return await self._play(request, name, 9)
        finally:
            self.scripts = script

    async def _compatible(self, request: web.Request) -> web.Response:
        """Answer a chat of the compatible API, which cuts without a word."""
        body = await request.json()
        self.requests.append(body)
        size = self._load(_full(body["model"]), 0)
        message = {"role": "assistant", "content": "Fine."}
        usage = {"prompt_tokens": self._read(body, size), "completion_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": usage})

    async def _tags(self, request: web.Request) -> web.Response:
        rows = [{"name": name, "model": name} for name in self.models]
        return web.json_response({"models": rows})

    async def _listed(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.models]})

    async def _ps(self, request: web.Request) -> web.Response:
        rows = [
            {"name": name, "model": name, "context_length": size}
            for name, size in self.loaded.items()
        ]
        return web.json_response({"models": rows})

    async def _show(self, request: web.Request) -> web.Response:
        name = _full((await request.json())["model"])
        if name not in self.models:
            return _refused(f"model '{name}' not found", 404)
        return web.json_response(self.models[name].shown)


def _full(name: str) -> str:
    return name if ":" in name else f"{name}:latest"


def text_line(text: str, **fields: Any) -> dict[str, Any]:
    """A line with a piece of text."""
    message = {"role": "assistant", "content": text, **fields}
    return {"created_at": "2026-11-22T10:00:00Z", "message": message, "done": False}


def done_line(tokens: int = 30, reason: str = "stop") -> dict[str, Any]:
    """The last line of an answer."""
    counts = {"prompt_eval_count": tokens, "eval_count": 2, "total_duration": 10**9}
    return {**text_line(""), "done": True, "done_reason": reason, **counts}


def call_line(name: str, arguments: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """A line with a tool call."""
    function = {"index": number, "name": name, "arguments": arguments}
    call = {"id": f"call_{number}{name}", "function": function}
    return text_line("", tool_calls=[call])


def _refused(message: str, status: int = 400) -> web.Response:
    return web.json_response({"error": message}, status=status)
