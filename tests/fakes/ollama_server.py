"""Ollama's own API: what its server would not read, and an Ollama in memory.

It loads models with the window of a request, and cuts prompts. Sources: Ollama's API
reference and the source of its server.
"""

import json
from typing import Any

from aiohttp import web

from tests.fakes.upstream import LoopbackServer

_ANY = (str, int, float, bool, list, dict, type(None))
_NUMBER = (int, float)
_CHAT: dict[str, Any] = {
    "model": str, "messages": list, "tools": list, "stream": bool, "truncate": bool,
    "shift": bool, "think": (bool, str), "format": (str, dict), "options": dict,
    "keep_alive": (str, int),
}  # fmt: skip
_GENERATE = {
    **{k: v for k, v in _CHAT.items() if k not in ("messages", "tools")},
    "prompt": str,
    "suffix": str,
    "raw": bool,
}
_OPTIONS = {
    "num_ctx": int, "num_predict": int, "temperature": _NUMBER, "top_p": _NUMBER,
    "stop": list,
}  # fmt: skip
_MESSAGE = {
    "role": str, "content": str, "thinking": str, "images": list, "tool_calls": list,
    "tool_name": str, "tool_call_id": str,
}  # fmt: skip
_PROPERTY = {
    "type": (str, list), "description": str, "enum": list, "items": _ANY,
    "properties": dict, "required": list, "anyOf": list,
}  # fmt: skip
_ROLES = frozenset({"system", "user", "assistant", "tool"})
_THINK = (True, False, "low", "medium", "high", "max")


def broken_rules(body: Any) -> list[str]:
    """Return why a body of `/api/chat` would be refused, or read wrongly."""
    found = [*_type_rules("", body, _CHAT)]
    if found:
        return found
    found += _type_rules("options.", body.get("options", {}), _OPTIONS)
    if body.get("think", True) not in _THINK:
        found.append("invalid think value")
    if body.get("format", "json") != "json" and not isinstance(body["format"], dict):
        found.append("format is no schema")
    for tool in body.get("tools", ()):
        found += _tool_rules(tool)
    names = {tool["function"]["name"] for tool in body.get("tools", ())}
    return [*found, *_message_rules(body["messages"], names)]


def broken_prompt_rules(body: Any) -> list[str]:
    """Return the same for a body of `/api/generate`."""
    return [
        *_type_rules("", body, _GENERATE),
        *_type_rules("", body.get("options", {}), _OPTIONS),
    ]


def _type_rules(at: str, value: Any, fields: dict[str, Any]) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: cannot unmarshal into an object"]
    unknown = [f"{at}{name} is ignored" for name in value if name not in fields]
    return unknown + [
        f"cannot unmarshal into {at}{name}"
        for name, item in value.items()
        if name in fields and not _is(item, fields[name])
    ]


def _is(value: Any, kinds: Any) -> bool:
    if isinstance(value, bool) and kinds in (int, _NUMBER):
        return False
    return isinstance(value, kinds)


def _tool_rules(tool: Any) -> list[str]:
    function = tool.get("function", {})
    found = _type_rules("tool.", tool, {"type": str, "function": dict})
    fields = {"name": str, "description": str, "parameters": dict}
    found += _type_rules("function.", function, fields)
    schema = function.get("parameters", {})
    if schema.get("type") != "object" or "properties" not in schema:
        found.append("parameters are no object")
    return found + _schema_rules(schema)


def _schema_rules(schema: Any) -> list[str]:
    """Only types are checked: unknown keywords are the user's, and are ignored."""
    if not isinstance(schema, dict):
        return ["cannot unmarshal a schema"]
    found = [
        f"cannot unmarshal into schema.{name}"
        for name, item in schema.items()
        if name in _PROPERTY and not _is(item, _PROPERTY[name])
    ]
    if "$ref" in schema:
        found.append("a reference is ignored")
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    return found + [rule for part in inner for rule in _schema_rules(part)]


def _message_rules(messages: list[Any], names: set[str]) -> list[str]:
    found: list[str] = []
    open_calls: list[tuple[str, str]] = []
    for place, message in enumerate(messages):
        found += _type_rules(f"messages[{place}].", message, _MESSAGE)
        if message.get("role") not in _ROLES or "content" not in message:
            found.append(f"messages[{place}] has no role or content")
        if message.get("role") == "tool":
            call = (message.get("tool_call_id"), message.get("tool_name"))
            if call in open_calls:
                open_calls.remove(call)
            else:
                found.append(f"messages[{place}] answers no call")
        elif open_calls:
            found.append(f"messages[{place}] comes before the results of calls")
            open_calls = []
        open_calls += _calls(message, found)
    return found + (["a call has no result"] if open_calls else [])


def _calls(message: dict[str, Any], found: list[str]) -> list[tuple[str, str]]:
    calls = []
    for call in message.get("tool_calls", ()):
        found += _type_rules("call.", call, {"id": str, "function": dict})
        function = call.get("function", {})
        found += _type_rules("call.", function, {"name": str, "arguments": dict})
        calls.append((call.get("id"), function.get("name")))
    return calls


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


class OllamaServer(LoopbackServer):
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

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/tags", self._tags),
            web.get("/v1/models", self._listed),
            web.get("/api/ps", self._ps),
            web.post("/api/show", self._show),
            web.post("/api/chat", self._chat),
            web.post("/api/generate", self._generate),
            web.post("/v1/chat/completions", self._compatible),
        ]

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
    message = {"role": "assistant", "content": text, **fields}
    return {"created_at": "2026-11-22T10:00:00Z", "message": message, "done": False}


def done_line(tokens: int = 30, reason: str = "stop") -> dict[str, Any]:
    """The last line of an answer."""
    counts = {"prompt_eval_count": tokens, "eval_count": 2, "total_duration": 10**9}
    return {**text_line(""), "done": True, "done_reason": reason, **counts}


def call_line(name: str, arguments: dict[str, Any], number: int = 0) -> dict[str, Any]:
    function = {"index": number, "name": name, "arguments": arguments}
    call = {"id": f"call_{number}{name}", "function": function}
    return text_line("", tool_calls=[call])


def _refused(message: str, status: int = 400) -> web.Response:
    return web.json_response({"error": message}, status=status)
