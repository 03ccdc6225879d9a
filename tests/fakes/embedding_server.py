"""An embedding server on a free loopback port, with limits and with faults on demand.

A vector depends on the words of its text, so that texts with common words are near to
each other. Faults are named and played once each, in order, before right answers.
"""

import asyncio
import base64
import hashlib
import json
import math
from array import array
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.fakes.upstream import LoopbackServer, Script, play, refusal

JSON = {"Content-Type": "application/json"}


def vector_of(text: str, dimensions: int, model: str = "") -> list[float]:
    """Return a vector of length 1 that is made of the vectors of words."""
    total = [0.0] * dimensions
    for word in ["", *text.split()]:
        digest = hashlib.shake_128(f"{model}\0{word}".encode()).digest(dimensions)
        for place, byte in enumerate(digest):
            total[place] += byte - 127.5
    length = math.sqrt(sum(number * number for number in total))
    return [number / length for number in total]


class EmbeddingServer(LoopbackServer):
    """Answers POST /v1/embeddings; any fault named in `faults` comes first.

    `most_texts` and `longest` (characters of a text) are refused with `limit_status`.
    """

    path = "/v1"

    def __init__(self, dimensions: int = 8, *, model: str = "tiny-embed") -> None:
        self.dimensions = dimensions
        self.model = model
        self.same: dict[str, str] = {}  # words that mean the same as others
        self.fails_at = ""  # a word: texts with it get no numbers
        self.faults: list[str | Script] = []
        self.always: str | Script = ""  # this fault, with every request
        self.takes_base64 = True
        self.most_texts = 2048
        self.longest = 2**21
        self.limit_status = 400
        self.seconds = 0.0  # before each answer
        self.key = ""
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.asked = 0  # requests of any kind, also those meant for others
        self.open = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    @property
    def sizes(self) -> list[int]:
        """How many texts each request had."""
        return [len(request["input"]) for request in self.requests]

    @property
    def texts(self) -> list[str]:
        """All texts that came, in order."""
        return [text for request in self.requests for text in request["input"]]

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/embeddings", self._embed),
        ]

    def make_app(self) -> web.Application:
        return web.Application(client_max_size=2**30, middlewares=[self._count])

    @web.middleware
    async def _count(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        self.asked += 1
        return await handler(request)

    async def _embed(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        self.open += 1
        self.reached.set()
        try:
            await self.gate.wait()
            await asyncio.sleep(self.seconds)
            return await play(request, self._script(body))
        finally:
            self.open -= 1

    def _script(self, body: dict[str, Any]) -> Script:
        fault = self.faults.pop(0) if self.faults else self.always
        if isinstance(fault, Script):
            return fault
        if self.key and self.keys[-1] != f"Bearer {self.key}":
            return refusal(401, f"Incorrect API key provided: {self.keys[-1]}")
        if body.get("model") != self.model:
            return refusal(404, f"The model `{body.get('model')}` does not exist")
        texts = body["input"]
        if len(texts) > self.most_texts:
            return refusal(self.limit_status, f"too many inputs: {len(texts)}")
        if any(len(text) > self.longest for text in texts):
            return refusal(self.limit_status, "an input is too long")
        if body.get("encoding_format") == "base64" and not self.takes_base64:
            return refusal(400, "unknown value of encoding_format")
        if fault in _SCRIPTS:
            return _SCRIPTS[fault]()
        answer = _MENDED.get(fault, _unchanged)(self._answer(body))
        return Script([json.dumps(answer).encode()], headers=JSON)

    def _answer(self, body: dict[str, Any]) -> dict[str, Any]:
        size = body.get("dimensions") or self.dimensions
        vectors = [self._vector(text, size) for text in body["input"]]
        items = [{"object": "embedding", "index": i} for i in range(len(vectors))]
        for item, vector in zip(items, vectors, strict=True):
            as_text = body.get("encoding_format") == "base64"
            item["embedding"] = encode(vector) if as_text else vector
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        return {"object": "list", "data": items, "model": self.model, "usage": usage}

    def _vector(self, text: str, size: int) -> list[float]:
        if self.fails_at and self.fails_at in text:
            return [_NAN] * size
        words = (self.same.get(word, word) for word in text.split())
        return vector_of(" ".join(words), size, self.model)


def encode(vector: list[float]) -> str:
    """Return a vector in base64, as OpenAI's API does."""
    return base64.b64encode(array("f", vector).tobytes()).decode()


def _unchanged(answer: dict[str, Any]) -> dict[str, Any]:
    return answer


def _with_first(value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def mend(answer: dict[str, Any]) -> dict[str, Any]:
        answer["data"][0]["embedding"] = value
        return answer

    return mend


def _changed(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda answer: {**answer, "data": change(answer["data"])}


_NAN = float("nan")
# What is done to a right answer.
_MENDED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "one too few": _changed(lambda items: items[1:]),
    "one too many": _changed(lambda items: [*items, items[0]]),
    "one longer": _with_first([1.0] * 99),
    "zeros": _with_first([0.0] * 8),
    "zeros in base64": _with_first(encode([0.0] * 8)),
    "NaN": _with_first([1.0] * 7 + [_NAN]),
    "NaN in base64": _with_first(encode([1.0] * 7 + [_NAN])),
    "null": _with_first([1.0] * 7 + [None]),
    "text": _with_first("not base64!"),
    "half a number": _with_first(base64.b64encode(b"12345").decode()),
    "same index": _changed(lambda items: [{**item, "index": 0} for item in items]),
}

# Whole answers.
_SCRIPTS: dict[str, Callable[[], Script]] = {
    "401": lambda: refusal(401, "Incorrect API key provided."),
    "429": lambda: refusal(429, "Rate limit reached."),
    "429 for a minute": lambda: refusal(429, "Slow down.", {"Retry-After": "60"}),
    "500": lambda: refusal(500, "Internal error."),
    "503": lambda: refusal(503, "Unavailable."),
    "413": lambda: refusal(413, "Payload too large."),
    "cut": lambda: Script([b'{"data": [{"index": 0,'], headers=JSON, end="reset"),
    "cut before the head": lambda: Script(before_head=True),
    "hang": lambda: Script([], headers=JSON, end="hang"),
    "hang in the body": lambda: Script([b'{"data": ['], headers=JSON, end="hang"),
    "not JSON": lambda: Script([b"<html>busy</html>"], headers=JSON),
    "an error inside 200": lambda: Script(
        [b'{"error": {"message": "The GPU is gone.", "code": 500}}'], headers=JSON
    ),
    "64 MiB": lambda: Script([b" " * 2**20] * 64 + [b"{}"], headers=JSON),
}
