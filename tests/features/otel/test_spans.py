"""Spans of a daemon's requests, as a collector gets them."""

import asyncio
import logging
import sys
from typing import Any, Self

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from pydantic import ValidationError

from byok.core.errors import ConfigError
from byok.core.events import Usage
from byok.core.record import RequestRecord
from byok.core.redact import Redactor
from byok.features.otel.collector import Collector
from byok.features.otel.settings import OtelSettings
from byok.features.otel.spans import attributes_of, span_name
from byok.settings import mask_settings
from byok.upstream.transport import Route
from tests.fakes.clock import Clock
from tests.fakes.daemon import running, settings_for
from tests.fakes.patience import until
from tests.fakes.upstream import FakeUpstream


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


def sending_to(collector: FakeCollector, fake: FakeUpstream) -> dict[str, Any]:
    headers = {"Authorization": "Bearer of-the-collector"}
    otel = {"endpoint": collector.url, "headers": headers}
    return {**settings_for(fake.url), "otel": otel}


async def test_a_chat_is_one_span_without_content(fake: FakeUpstream) -> None:
    async with FakeCollector() as collector:
        async with running(sending_to(collector, fake)) as editor:
            await editor.post("/find-missing", {"mem_object_names": []})
            await editor.chat("The secret question.", conversation_id="c0ffee")
            shown = mask_settings(editor.services.settings)
        await until(lambda: bool(collector.spans))  # the last come behind the end
    [span] = collector.spans
    found = values_of(span)
    assert span.name == f"chat {found['gen_ai.request.model']}"
    assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert (found["byok.upstream"], found["byok.endpoint"]) == ("fake", "/chat-stream")
    assert found["gen_ai.conversation.id"] == "c0ffee"
    assert collector.headers[0]["Authorization"] == "Bearer of-the-collector"
    assert b"secret question" not in b"".join(collector.bodies)
    assert b"Hi." not in b"".join(collector.bodies)
    assert "of-the-collector" not in str(shown)


async def test_a_broken_collector_changes_no_answer(fake: FakeUpstream) -> None:
    async with FakeCollector(500) as collector:
        async with running(sending_to(collector, fake)) as editor:
            reply = await editor.chat("Hello.")
            assert reply.text == "Hi."
        await until(lambda: bool(collector.spans))
    assert len(collector.spans) == 1


async def test_off_is_the_default(fake: FakeUpstream) -> None:
    async with FakeCollector() as collector:
        async with running(sending_to(collector, fake)) as editor:
            settings = editor.services.settings
            off = settings.model_copy(update={"otel": OtelSettings()})
            await editor.daemon.use(off)
            await editor.chat("Hello.")
        async with running(settings_for(fake.url)) as editor:
            await editor.chat("Hello.")
    assert collector.bodies == []


async def test_without_the_sdk_the_settings_are_refused(
    fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "byok.features.otel.collector", None)
    async with FakeCollector() as collector:
        with pytest.raises(ConfigError, match="not installed"):
            async with running(sending_to(collector, fake)):
                pass


@pytest.mark.parametrize(
    "endpoint",
    ["http://collector.example:4318", "http://10.0.0.1:4318", "ftp://127.0.0.1", "x"],
)
def test_spans_go_nowhere_unencrypted(endpoint: str) -> None:
    with pytest.raises(ValidationError):
        OtelSettings(endpoint=endpoint)


async def test_the_provider_is_that_of_the_preset(fake: FakeUpstream) -> None:
    upstream = {"type": "mistral", "base_url": fake.url, "timeout": 5}
    async with FakeCollector() as collector:
        settings = {
            "upstreams": {"mine": upstream},
            "otel": {"endpoint": collector.url},
        }
        environ = {"BYOK_KEY_MINE": "k" * 20, "MISTRAL_API_KEY": "k" * 20}
        async with running(settings, environ=environ) as editor:
            await editor.chat("Hello.")
        await until(lambda: bool(collector.spans))
    [span] = collector.spans
    found = values_of(span)
    assert found["gen_ai.provider.name"] == "mistral_ai"
    assert found["byok.upstream"] == "mine"


def record_of(endpoint: str = "/chat-stream") -> RequestRecord:
    record = RequestRecord("r1", endpoint=endpoint, clock=Clock())
    record.upstream, record.model, record.attempts = "mine", "m", 2
    record.usage, record.first_byte = Usage(100, 10, 60, 20, 5), 0.5
    record.conversation = "c0ffee"
    return record


def test_names_are_those_of_the_conventions() -> None:
    record = record_of()
    record.finish(200)
    found = attributes_of(record, {"mine": "xai"}, 0.25, str)
    known = [*vars(gen_ai_attributes).values()]
    assert [n for n in found if n.startswith("gen_ai.") and n not in known] == []
    assert span_name(record, str) == "chat m"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "x_ai",
        "gen_ai.request.model": "m",
        "gen_ai.conversation.id": "c0ffee",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 20,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "gen_ai.response.time_to_first_chunk": 0.5,
        "byok.cost_usd": 0.25,
        "byok.attempts": 2,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "error.type" not in found


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [(200, "upstream_refused", "upstream_refused"), (499, "", "cancelled")],
)
def test_a_failure_has_a_type(status: int, error: str, told: str) -> None:
    record = record_of()
    record.error = error
    record.finish(status)
    assert attributes_of(record, {}, None, str)["error.type"] == told


def test_an_unknown_cost_is_left_out() -> None:
    record = record_of("/completion")
    record.finish(200)
    found = attributes_of(record, {}, None, str)
    assert "byok.cost_usd" not in found
    assert found["gen_ai.operation.name"] == "text_completion"


def test_hostile_names_are_short_and_hold_no_key() -> None:
    record = record_of()
    record.model = "sk-" + "x" * 40 + "\x1b\ud800" + "m" * 10**6
    record.usage = Usage(10**40, -3)
    record.finish(200)
    found = attributes_of(record, {}, None, Redactor())
    model = str(found["gen_ai.request.model"])
    assert model.startswith("[redacted]\\x1b\\ud800m")
    assert len(model) == 200
    assert found["gen_ai.usage.input_tokens"] == 10**12
    assert found["gen_ai.usage.output_tokens"] == 0


@pytest.mark.parametrize("path", ["", "/", "/v1/traces"])
async def test_the_path_of_traces_is_added_once(path: str) -> None:
    async with FakeCollector() as fake:
        collector = Collector(fake.url + path, {"Authorization": "Basic x"}, Route())
        done = await asyncio.to_thread(collector.export, [])
        collector.shutdown()
    assert done is SpanExportResult.SUCCESS
    assert fake.headers[0]["Authorization"] == "Basic x"


async def test_a_redirect_is_a_failure_and_not_followed() -> None:
    async with (
        FakeCollector() as other,
        FakeCollector(307, f"{other.url}/v1/traces") as fake,
    ):
        collector = Collector(fake.url, {}, Route())
        done = await asyncio.to_thread(collector.export, [])
        collector.shutdown()
    assert done is SpanExportResult.FAILURE
    assert (len(fake.bodies), len(other.bodies)) == (1, 0)


async def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with FakeCollector() as fake:
        collector = Collector(fake.url, {}, Route(proxy="http://127.0.0.1:9"))
        done = await asyncio.to_thread(collector.export, [])
        collector.shutdown()
    assert done is SpanExportResult.SUCCESS


def test_a_dead_collector_is_told_once_and_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    collector = Collector("http://127.0.0.1:9", {"Authorization": "secret"}, Route())
    for _ in range(3):
        assert collector.export([]) is SpanExportResult.FAILURE
    collector.shutdown()
    [told] = caplog.messages
    assert told == "spans cannot be sent to 127.0.0.1: ConnectError"
