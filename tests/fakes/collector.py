"""A collector of OpenTelemetry on loopback, which reads what SDKs send."""

from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class FakeCollector:
    """Takes spans at /v1/traces; `status` is what it answers."""

    def __init__(self, status: int = 200, location: str = "") -> None:
        self.status = status
        self.location = location
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        app = web.Application()
        app.router.add_post("/v1/traces", self._take)
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    async def _take(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.read())
        self.headers.append(dict(request.headers))
        where = {"Location": self.location} if self.location else {}
        return web.Response(status=self.status, headers=where)


def values_of(span: Span) -> dict[str, str | int | float]:
    kinds = {"string_value", "int_value", "double_value"}
    found: dict[str, str | int | float] = {}
    for attribute in span.attributes:
        kind = attribute.value.WhichOneof("value")
        assert kind in kinds
        found[attribute.key] = getattr(attribute.value, kind)
    return found
