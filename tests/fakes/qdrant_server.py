"""A server of vectors that answers Qdrant's own client, and can misbehave."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from aiohttp import web

from tests.fakes.upstream import LoopbackServer

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


@dataclass
class Stored:
    """A collection: how it was made, its indexes and its points."""

    made: dict[str, Any]
    indexes: dict[str, Any] = field(default_factory=dict)
    points: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return int(self.made["vectors"]["size"])


class RefusedError(Exception):
    """The answer is an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class QdrantServer(LoopbackServer):
    """Keeps collections in memory.

    `keys` maps API keys to "rw" or "r"; without any, everybody may do everything.
    `fault` may answer a request instead; `touch` may change an answer's result.
    """

    def __init__(self) -> None:
        self.collections: dict[str, Stored] = {}
        self.keys: dict[str, str] = {}
        self.fault: Fault | None = None
        self.touch: Callable[[str, Any], Any] = lambda what, result: result
        self.calls: list[str] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{tail:.*}", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.calls.append(f"{request.method} {request.path}")
        self.bodies.append(body)
        self.headers.append({k.lower(): v for k, v in request.headers.items()})
        if self.fault is not None and (given := await self.fault(request)) is not None:
            return given
        try:
            self._authorise(request)
            result = self._answer(request, orjson.loads(body) if body else {})
        except RefusedError as error:
            refusal = {"status": {"error": str(error)}, "time": 0.0}
            return web.json_response(refusal, status=error.status)
        answer = {"time": 0.0, "status": "ok", "result": result}
        what = f"{request.method} {request.path.rpartition('/')[2]}"
        answer["result"] = self.touch(what, result)
        return web.json_response(answer)

    def _authorise(self, request: web.Request) -> None:
        if not self.keys:
            return
        rights = self.keys.get(request.headers.get("api-key", ""))
        if rights is None:
            raise RefusedError(401, "Must provide an API key")
        reads = request.method == "GET" or request.path.endswith(("/points", "/query"))
        if rights == "r" and not (reads and request.method != "PUT"):
            raise RefusedError(403, "Forbidden: global access is required")

    def _answer(self, request: web.Request, body: Any) -> Any:
        _, _, name, *rest = request.path.split("/")
        action = f"{request.method} {'/'.join(rest)}"
        if action == "GET exists":
            return {"exists": name in self.collections}
        if action == "PUT ":
            if name in self.collections:
                raise RefusedError(409, f"Collection `{name}` already exists!")
            self.collections[name] = Stored(body)
            return True
        stored = self.collections.get(name)
        if stored is None:
            raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
        if action not in _ACTIONS:
            raise RefusedError(404, f"no such operation: {action}")
        return _ACTIONS[action](stored, body)


_DONE = {"operation_id": 1, "status": "completed"}


def _upsert(stored: Stored, body: Any) -> Any:
    batch = body["batch"]
    for vector in batch["vectors"]:
        if len(vector) != stored.size:
            text = f"expected dim: {stored.size}, got {len(vector)}"
            raise RefusedError(400, f"Wrong input: Vector dimension error: {text}")
    for point, vector, payload in zip(
        batch["ids"], batch["vectors"], batch["payloads"], strict=True
    ):
        if point not in stored.points or body.get("update_mode") != "insert_only":
            row = np.array(vector, dtype=np.float64)
            length = float(np.linalg.norm(row)) or 1.0
            kept = (row / length).astype(np.float16).astype(np.float64)
            stored.points[point] = (kept.tolist(), dict(payload or {}))
    return _DONE


def _record(stored: Stored, point: str, body: Any) -> Any:
    vector, payload = stored.points[point]
    record: dict[str, Any] = {"id": point}
    if wanted := body.get("with_payload"):
        record["payload"] = {k: v for k, v in payload.items() if k in wanted}
    if body.get("with_vector"):
        record["vector"] = vector
    return record


def _matching(stored: Stored, condition: Any) -> list[str]:
    def matches(point: str, payload: dict[str, Any]) -> bool:
        return all(
            point in must["has_id"]
            if "has_id" in must
            else {*must["match"]["any"]} & {*payload.get(must["key"], [])}
            for must in (condition or {}).get("must", [])
        )

    return [point for point, (_, had) in stored.points.items() if matches(point, had)]


def _search(stored: Stored, body: Any) -> list[Any]:
    question = np.array(body["query"]["nearest"], dtype=np.float64)
    question /= np.linalg.norm(question)
    scored = [
        (float(np.dot(stored.points[point][0], question)), point)
        for point in _matching(stored, body.get("filter"))
    ]
    best = sorted(scored, reverse=True)[: body["limit"]]
    return [{"id": point, "version": 1, "score": score} for score, point in best]


def _index(stored: Stored, body: Any) -> Any:
    stored.indexes[body["field_name"]] = body["field_schema"]
    return _DONE


def _retrieve(stored: Stored, body: Any) -> Any:
    there = [point for point in body["ids"] if point in stored.points]
    return [_record(stored, point, body) for point in there]


def _set_payload(stored: Stored, body: Any) -> Any:
    for point in body["points"]:
        stored.points[point][1].update(body["payload"])
    return _DONE


_ACTIONS: dict[str, Callable[[Stored, Any], Any]] = {
    "PUT index": _index,
    "PUT points": _upsert,
    "POST points": _retrieve,
    "POST points/payload": _set_payload,
    "POST points/query": lambda stored, body: {"points": _search(stored, body)},
}


def answer(content: bytes = b"", *, status: int = 200, **headers: str) -> Fault:
    """Return a fault: this answer to every request."""

    async def give(request: web.Request) -> web.StreamResponse:
        del request
        head = {name.replace("_", "-"): value for name, value in headers.items()}
        head.setdefault("content-type", "application/json")
        return web.Response(body=content, status=status, headers=head)

    return give


async def cut(request: web.Request) -> web.StreamResponse:
    """A fault: the connection ends in the middle of the answer."""
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"result":')
    assert request.transport is not None
    request.transport.abort()
    return response
