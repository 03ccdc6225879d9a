"""The made-up vendor of byok demo: an OpenAI-like server on this machine.

It counts four characters as a token, caches prefixes of prompts for five minutes, has
two models, and can be overloaded. Its answers are those of the demo upstream.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolDefinition,
    ToolResult,
)
from byok.core.wire.json_body import parse_json
from byok.upstream.demo import answer_of

LARGE, SMALL, GONE = "sample-large", "sample-small", "sample-retired"
# US dollars per million tokens: the prompt, the part from the cache, the answer.
PRICES = {LARGE: (3.0, 0.3, 15.0), SMALL: (0.25, 0.025, 1.0)}
_CACHE_SECONDS = 300.0
_MIN_CACHED_TOKENS = 1024
_CHARS_PER_TOKEN = 4
_FIRST_WORD_SECONDS, _NEXT_WORD_SECONDS = 0.15, 0.01
_BUSY = 503, "overloaded_error", "The sample vendor is overloaded. Try again."
_UNKNOWN = 404, "model_not_found", f"The model `{GONE}` does not exist any more."


class Vendor:
    """The state of the server; `clock` is that of the demo, in seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.url = ""
        self.is_busy = False  # refuses the next request
        self.clock = clock
        self._cache: dict[bytes, float] = {}  # digests of prefixes: time of last use

    def refusal_of(self, body: dict[str, Any]) -> tuple[int, str, str] | None:
        """Return status, code and message if a request is refused."""
        if self.is_busy:
            self.is_busy = False
            return _BUSY
        return None if body["model"] in PRICES else _UNKNOWN

    def count_prompt(self, body: dict[str, Any]) -> tuple[int, int]:
        """Return the tokens of a prompt, and how many were cached; cache the prompt."""
        now, digest, size, cached = self.clock(), sha256(), 0, 0
        parts = [body["model"], *body.get("tools", ()), *body["messages"]]
        for part in parts:
            raw = json.dumps(part).encode()
            digest.update(raw)
            size += len(raw)
            key = digest.digest()
            if now - self._cache.get(key, 0.0) <= _CACHE_SECONDS:
                cached = size
            self._cache[key] = now
        tokens, read = size // _CHARS_PER_TOKEN, cached // _CHARS_PER_TOKEN
        return tokens, read if read >= _MIN_CACHED_TOKENS else 0


@contextmanager
def selling(vendor: Vendor) -> Iterator[None]:
    """Serve a vendor in a thread within the block, and set its `url`."""

    class Handler(_Handler):
        sells = vendor

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        vendor.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = Thread(target=server.serve_forever, name="vendor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    sells: Vendor

    def handle(self) -> None:
        """Answer a connection; ignore clients that leave, as at the end of the demo."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """List the models."""
        self._answer(200, {"data": [{"id": name} for name in PRICES]})

    def do_POST(self) -> None:
        """Answer a chat in pieces, or refuse it."""
        body = parse_json(self.rfile.read(int(self.headers["Content-Length"])))
        if refused := self.sells.refusal_of(body):
            status, code, message = refused
            self._answer(status, {"error": {"code": code, "message": message}})
            return
        tokens, read = self.sells.count_prompt(body)
        text, call = answer_of(_chat_of(body))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        time.sleep(_FIRST_WORD_SECONDS)
        for word in text.split(" "):
            self._send(_choice({"content": f"{word} "}))
            time.sleep(_NEXT_WORD_SECONDS)
        if call is not None:
            function = {"name": call.name, "arguments": call.arguments}
            calls = {
                "index": 0,
                "id": call.id,
                "type": "function",
                "function": function,
            }
            self._send(_choice({"tool_calls": [calls]}))
        self._send(_choice({}, "stop" if call is None else "tool_calls"))
        answer = text + (call.name + call.arguments if call else "")
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": max(1, len(answer) // _CHARS_PER_TOKEN),
            "prompt_tokens_details": {"cached_tokens": read},
        }
        self._send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing on the terminal."""

    def _answer(self, status: int, value: object) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _send(self, chunk: object) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


def _choice(delta: dict[str, Any], ends: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": ends}]}


def _chat_of(body: dict[str, Any]) -> ChatRequest:
    """Return the last message and the tools of a request."""
    last = body["messages"][-1]
    content = last["content"]
    texts = (
        [content]
        if isinstance(content, str)
        else [part.get("text", "") for part in content]
    )
    if last["role"] == "tool":
        result = ToolResult(last["tool_call_id"], "", "\n".join(texts))
        message = Message(Role.TOOL, (result,))
    else:
        message = Message(Role.USER, tuple(TextPart(text) for text in texts))
    tools = [tool["function"]["name"] for tool in body.get("tools", ())]
    definitions = tuple(ToolDefinition(name, "", {}) for name in tools)
    return ChatRequest((message,), tools=definitions)
