"""A server of vectors that can misbehave, and Qdrant's contract, which judges it.

The contract is Qdrant's public OpenAPI file, stricter in two ways: an object may have
no field that is not listed, and a place said to be nullable takes nothing but null.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson
from aiohttp import web
from jsonschema import Draft7Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT7

_ROOT = "urn:qdrant"
_JSON = "application/json"
_NUMBER = {"type": "number", "format": "float"}


def _items(
    validator: Any, items: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Judge a list; a vector at once, as one number after another takes seconds."""
    is_vector = items == _NUMBER and isinstance(instance, list)
    if not (is_vector and {int, float}.issuperset(map(type, instance))):
        judge = Draft7Validator.VALIDATORS["items"]
        yield from judge(validator, items, instance, schema)


_Validator = extend(Draft7Validator, {"items": _items})


class Contract:
    """Judges exchanges; `violations` collects what broke the file, `seen` what came."""

    def __init__(self, file: Path) -> None:
        self._paths, self._registry = _load(file)
        self.violations: list[str] = []
        self.seen: set[str] = set()

    def judge(
        self, method: str, path: str, query: dict[str, str], body: bytes, answer: Any
    ) -> None:
        """Judge a request to which the answer was a success."""
        matches = [p for p in self._paths if _pattern(p).fullmatch(path)]
        place = min(matches, key=lambda p: p.count("{"), default="")
        what = f"{method} {place or path}"
        self.seen.add(what)
        operation = self._paths.get(place, {}).get(method.lower())
        if operation is None:
            self.violations.append(f"{what}: no such operation")
            return
        parameters = {one["name"] for one in operation.get("parameters", [])}
        for name in query.keys() - parameters:
            self.violations.append(f"{what}: query parameter {name}")
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"][_JSON]["schema"]
            self._check(f"{what} request", schema, orjson.loads(body))
        elif body:
            self.violations.append(f"{what}: has a body")
        schema = operation["responses"]["200"]["content"][_JSON]["schema"]
        self._check(f"{what} answer", schema, answer)

    def judge_error(self, answer: Any) -> None:
        """Judge the answer to a request that was refused."""
        schema = {"$ref": f"{_ROOT}#/components/schemas/ErrorResponse"}
        self._check("error", schema, answer)

    def _check(self, what: str, schema: Any, value: Any) -> None:
        validator = _Validator(schema, registry=self._registry)
        for error in validator.iter_errors(value):
            self.violations.append(f"{what}: {error.json_path}: {error.message[:200]}")


@cache
def _load(file: Path) -> tuple[dict[str, Any], Any]:
    spec = orjson.loads(file.read_bytes())
    _adapt(spec)
    resource = DRAFT7.create_resource(spec)
    return spec["paths"], Registry().with_resource(_ROOT, resource)


def _adapt(node: Any) -> None:
    """Make JSON Schema of what OpenAPI 3.0 writes in its own way."""
    if isinstance(node, list):
        for one in node:
            _adapt(one)
    if not isinstance(node, dict):
        return
    if isinstance(reference := node.get("$ref"), str):
        node["$ref"] = reference.replace("#/", f"{_ROOT}#/", 1)
    if node.pop("nullable", False) is True:
        if "anyOf" in node:
            node["anyOf"].append({"type": "null"})
        else:
            node["type"] = [node["type"], "null"] if "type" in node else "null"
    if isinstance(node.get("properties"), dict) and "type" in node:
        node.setdefault("additionalProperties", False)
    for value in node.values():
        _adapt(value)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))


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


class QdrantServer:
    """Serves on a free port of loopback while it is entered.

    `keys` maps API keys to "rw" or "r"; without any, everybody may do everything.
    `fault` may answer a request instead; `touch` may change an answer's result.
    """

    def __init__(self, contract: Contract | None = None) -> None:
        self.contract = contract
        self.collections: dict[str, Stored] = {}
        self.keys: dict[str, str] = {}
        self.fault: Fault | None = None
        self.touch: Callable[[str, Any], Any] = lambda what, result: result
        self.calls: list[str] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._stack = AsyncExitStack()
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()
        if self.contract is not None:
            assert self.contract.violations == []

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
            if self.contract:
                self.contract.judge_error(refusal)
            return web.json_response(refusal, status=error.status)
        answer = {"time": 0.0, "status": "ok", "result": result}
        if self.contract:
            query = dict(request.query)
            self.contract.judge(request.method, request.path, query, body, answer)
        what = f"{request.method} {request.path.rpartition('/')[2]}"
        answer["result"] = self.touch(what, result)
        return web.Response(body=_dump(answer), content_type="application/json")

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
        if action == "DELETE ":
            del self.collections[name]
            return True
        if action not in _ACTIONS:
            raise RefusedError(404, f"no such operation: {action}")
        return _ACTIONS[action](stored, body)


_DONE = {"operation_id": 1, "status": "completed"}


def _dump(answer: Any) -> bytes:
    """Write JSON that may hold numbers which JSON has not."""
    import json

    return json.dumps(answer).encode()


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


def _delete(stored: Stored, body: Any) -> Any:
    for point in body["points"]:
        stored.points.pop(point, None)
    return _DONE


_ACTIONS: dict[str, Callable[[Stored, Any], Any]] = {
    "GET ": lambda stored, body: _describe(stored),
    "PUT index": _index,
    "PUT points": _upsert,
    "POST points": _retrieve,
    "POST points/payload": _set_payload,
    "POST points/query": lambda stored, body: {"points": _search(stored, body)},
    "POST points/count": lambda stored, body: {
        "count": len(_matching(stored, body.get("filter")))
    },
    "POST points/delete": _delete,
}


def _describe(stored: Stored) -> Any:
    made = {name: stored.made[name] for name in ("vectors", "on_disk_payload")}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "points_count": len(stored.points),
        "config": {
            "params": made,
            "hnsw_config": {
                "m": 16,
                "ef_construct": 100,
                "full_scan_threshold": 10_000,
                **stored.made["hnsw_config"],
            },
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "quantization_config": stored.made["quantization_config"],
        },
        "payload_schema": {
            name: {"data_type": schema["type"], "params": schema, "points": 0}
            for name, schema in stored.indexes.items()
        },
    }


def answer(content: bytes = b"", *, status: int = 200, **headers: str) -> Fault:
    """Return a fault: this answer to every request."""

    async def give(request: web.Request) -> web.StreamResponse:
        del request
        head = {name.replace("_", "-"): value for name, value in headers.items()}
        head.setdefault("content-type", "application/json")
        return web.Response(body=content, status=status, headers=head)

    return give


async def hang(request: web.Request) -> web.StreamResponse:
    """A fault: no answer."""
    del request
    await asyncio.Event().wait()
    raise AssertionError


async def cut(request: web.Request) -> web.StreamResponse:
    """A fault: the connection ends in the middle of the answer."""
    response = web.StreamResponse(headers={"content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"result":')
    assert request.transport is not None
    request.transport.abort()
    return response
