"""Sending to a collector: no redirect is followed, failures are told once."""

import asyncio
import logging

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from byok.features.otel.collector import Collector
from byok.upstream.transport import Route
from tests.fakes.collector import FakeCollector


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
