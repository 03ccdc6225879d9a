"""Every endpoint under schemathesis: no 5xx but 503, JSON errors, never unasked.

The OpenAPI description is made from the endpoint tables, in memory. One daemon has the
demo behind it, the other an upstream whose answers are bad in changing ways.
"""

import asyncio
import os
import random
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode

from byok.protocols.augment.constant_replies import ConstantReply
from byok.protocols.augment.endpoints import ENDPOINTS, Generate, Refused
from byok.server.openai_api import ROUTES, Forward, ListModels
from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, answer, delta, tool_answer

_EXAMPLES = 12
_MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
_OTHER_METHODS = ("GET", "PUT", "DELETE", "PATCH", "HEAD", "TRACE")
_TEXT = {"type": "string"}
_NODE = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "type": {"type": "integer", "minimum": 0, "maximum": 12},
        "text_node": {"type": "object", "properties": {"content": _TEXT}},
        "tool_result_node": {
            "type": "object",
            "properties": {"tool_use_id": _TEXT, "content": _TEXT},
        },
        "tool_use": {
            "type": "object",
            "properties": {
                "tool_use_id": _TEXT,
                "tool_name": _TEXT,
                "input_json": _TEXT,
            },
        },
    },
}
_NODES = {"type": "array", "items": _NODE, "maxItems": 3}
_CHAT = {
    "type": "object",
    "properties": {
        "message": _TEXT,
        "model": _TEXT,
        "nodes": _NODES,
        "silent": {"type": "boolean"},
        "chat_history": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "request_message": _TEXT,
                    "response_text": _TEXT,
                    "request_nodes": _NODES,
                    "response_nodes": _NODES,
                },
            },
        },
        "tool_definitions": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"name": _TEXT, "input_schema_json": _TEXT},
            },
        },
    },
}
_BLOBS = {
    "type": "object",
    "properties": {
        "model": _TEXT,
        "mem_object_names": {"type": "array", "items": _TEXT, "maxItems": 5},
        "blobs": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"path": _TEXT, "content": _TEXT, "blob_name": _TEXT},
            },
        },
        "information_request": _TEXT,
    },
}
_OPENAI = {
    "type": "object",
    "properties": {"model": _TEXT, "stream": {"type": "boolean"}, "messages": {}},
}


def _error(*fields: str) -> dict[str, Any]:
    body = {"type": "object", "required": list(fields)}
    return {
        "type": "object",
        "required": ["error"],
        "properties": {"error": body, "message": _TEXT},
        "additionalProperties": False,
    }


_OWN_ERROR = _error("code", "message", "hint", "request_id", "retryable")
_OPENAI_ERROR = _error("code", "message", "type", "param")


def description() -> dict[str, Any]:
    """Return the OpenAPI description of every row of the endpoint tables."""
    paths: dict[str, Any] = {}
    for row in ENDPOINTS:
        if isinstance(row, Refused):
            good: dict[str, Any] = {}
        elif isinstance(row, (Generate, ConstantReply)) and row.stream:
            good = {"200": _answer("application/x-ndjson", {})}
        else:
            good = {"200": _answer("application/json", {"type": "object"})}
        body = _CHAT if isinstance(row, Generate) else _BLOBS
        paths[row.path] = {"post": _operation(body, good, _OWN_ERROR)}
    for route in ROUTES:
        match route:
            case Forward():
                kinds = {**_kind("application/json"), **_kind("text/event-stream")}
                good = {"200": {"description": "passed on", "content": kinds}}
                operation = _operation(_OPENAI, good, _OPENAI_ERROR)
            case ListModels():
                good = {"200": _answer("application/json", {"type": "object"})}
                operation = _operation(None, good, _OPENAI_ERROR)
        method = route.method.lower() if isinstance(route, ListModels) else "post"
        paths[route.path] = {method: operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "byok", "version": "0"},
        "paths": paths,
    }


def _operation(body: Any, good: dict[str, Any], error: Any) -> dict[str, Any]:
    failed = _answer("application/json", error)
    operation: dict[str, Any] = {"responses": {**good, "4XX": failed, "503": failed}}
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answer(kind: str, schema: Any) -> dict[str, Any]:
    return {"description": kind, "content": {kind: {"schema": schema}}}


def _kind(kind: str) -> dict[str, Any]:
    return {kind: {"schema": {}}}


def _scripts(passed_on: bool) -> list[Script]:
    """Return answers of an upstream; without garbage if they are `passed_on`."""
    json_type = {"Content-Type": "application/json"}
    refusal = [b'{"error": {"message": "no", "type": "x"}}']
    garbage = [
        Script([b"<html>"], headers={"Content-Type": "text/html"}),
        Script([b"\xff\xfe\x00"], headers=json_type),
        Script([b""], headers=json_type),
        Script([b"x" * 100], headers={"Content-Encoding": "gzip"}),
    ]
    return [
        *([] if passed_on else garbage),
        Script(answer("Hi", " there.")),
        Script(tool_answer("view", '{"path": "a"}')),
        Script(tool_answer("view", '{"path": ')),
        Script([delta(content="half")]),
        Script([b"data: nonsense\n\n"]),
        Script([b"{}"], headers=json_type),
        Script([b""]),
        *(Script(refusal, s, json_type) for s in (400, 401, 404, 413, 422)),
        Script(refusal, 302, {"Location": "http://127.0.0.1:1/"}),
        Script([b'data: {"error": {"message": "no"}}\n\n']),
    ]


_WHOLE_OR_NOTHING = ("/instruction-stream", "/smart-paste-stream")


@dataclass
class _Running:
    url: str
    token: str
    fake: FakeUpstream | None


@contextmanager
def _daemons() -> Iterator[list[_Running]]:
    """Run both daemons in the event loop of a separate thread."""
    loop = asyncio.new_event_loop()
    stack = AsyncExitStack()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> list[_Running]:
        fake = await stack.enter_async_context(FakeUpstream())
        demo = await stack.enter_async_context(running({}, upstream="demo"))
        first = _Running(demo.daemon.url, demo.token, None)
        os.environ["BYOK_HOME"] = tempfile.mkdtemp(dir=os.environ["BYOK_HOME"])
        other = await stack.enter_async_context(running(settings_for(fake.url)))
        return [first, _Running(other.daemon.url, other.token, fake)]

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


class _Survey:
    """Calls operations and collects findings, once each."""

    def __init__(self) -> None:
        self.calls = 0
        self.statuses: Counter[int] = Counter()
        self.findings: dict[str, dict[str, str]] = {}
        self._session = requests.Session()
        self._random = random.Random(0)

    def operation(
        self, operation: Any, daemon: _Running, mode: Any, number: int
    ) -> None:
        """Call one operation with a few cases."""

        @seed(number)
        @settings(
            max_examples=_EXAMPLES,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def call(case: Any) -> None:
            self._call(case, daemon)

        try:
            call()
        except (Exception, BaseExceptionGroup) as error:
            if type(error).__name__ != "Unsatisfiable":
                self._record(operation.label, error)
        self._without_token(operation, daemon)
        self._other_method(operation, daemon)

    def _call(self, case: Any, daemon: _Running) -> None:
        if daemon.fake is not None:
            passed_on = case.operation.path.startswith("/v1/")
            daemon.fake.play(self._random.choice(_scripts(passed_on)))
            fake = daemon.fake
            for history in (fake.requests, fake.bodies, fake.headers):
                history.clear()
        headers = {"Authorization": f"Bearer {daemon.token}"}
        try:
            response = case.call(
                base_url=daemon.url, session=self._session, headers=headers
            )
        except requests.exceptions.ChunkedEncodingError:
            if case.operation.path in _WHOLE_OR_NOTHING:
                return  # broken off without its end marker, as intended
            raise
        self._count(response.status_code)
        case.validate_response(
            response,
            checks=[schemathesis.checks.not_a_server_error, *_conformance()]
            if response.status_code != 503
            else _conformance(),
        )
        assert response.status_code < 500 or response.status_code == 503
        assert response.headers["server"] == ["byok"]

    def _without_token(self, operation: Any, daemon: _Running) -> None:
        for headers in ({}, {"Authorization": "Bearer " + "x" * len(daemon.token)}):
            self._expect(operation, daemon, operation.method, {401}, headers)

    def _other_method(self, operation: Any, daemon: _Running) -> None:
        wrong = [m for m in _OTHER_METHODS if m != operation.method.upper()]
        headers = {"Authorization": f"Bearer {daemon.token}"}
        self._expect(operation, daemon, self._random.choice(wrong), {405}, headers)

    def _expect(
        self,
        operation: Any,
        daemon: _Running,
        method: str,
        statuses: set[int],
        headers: dict[str, str],
    ) -> None:
        kind = {"Content-Type": "application/json"}
        response = self._session.request(
            method, daemon.url + operation.path, headers={**kind, **headers}, data=b"{}"
        )
        self._count(response.status_code)
        try:
            assert response.status_code in statuses, f"{method}: {response.status_code}"
        except AssertionError as error:
            self._record(operation.label, error)

    def _count(self, status: int) -> None:
        self.calls += 1
        self.statuses[status] += 1

    def _record(self, label: str, error: BaseException) -> None:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        text = "".join(traceback.format_exception_only(error))
        key = f"{label} {type(error).__name__}"
        self.findings.setdefault(key, {"place": key, "input": text, "text": text[:300]})


def _conformance() -> list[Any]:
    from schemathesis.specs.openapi import checks

    return [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]


def hunt(seconds: float) -> dict[str, Any]:
    """Survey all operations again and again until the CPU time is used up."""
    survey = _Survey()
    started = time.process_time()
    schema = schemathesis.openapi.from_dict(description())
    operations = [result.ok() for result in schema.get_all_operations()]
    rounds = 0
    with _daemons() as daemons:
        while time.process_time() - started < seconds:
            for operation in operations:
                daemon, mode = daemons[rounds % 2], _MODES[rounds // 2 % 2]
                survey.operation(operation, daemon, mode, rounds)
                if time.process_time() - started > seconds:
                    break
            rounds += 1
    return {
        "executions": survey.calls,
        "cpu_seconds": round(time.process_time() - started, 1),
        "findings": list(survey.findings.values()),
        "facts": {
            "operations": len(operations),
            "rounds": rounds,
            "statuses": {str(k): v for k, v in sorted(survey.statuses.items())},
        },
    }
