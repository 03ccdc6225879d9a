"""Spans of a daemon's requests, as a collector gets them."""

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from byok.core.errors import ConfigError
from byok.features.otel.settings import OtelSettings
from byok.settings import mask_settings
from tests.fakes.collector import FakeCollector, values_of
from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream


def sending_to(collector: FakeCollector, fake: FakeUpstream) -> dict[str, Any]:
    headers = {"Authorization": "Bearer of-the-collector"}
    otel = {"endpoint": collector.url, "headers": headers}
    return {**settings_for(fake.url), "otel": otel}


async def test_a_chat_is_one_span_without_content(fake: FakeUpstream) -> None:
    async with (
        FakeCollector() as collector,
        running(sending_to(collector, fake)) as editor,
    ):
        await editor.post("/find-missing", {"mem_object_names": []})
        await editor.chat("The secret question.", conversation_id="c0ffee")
        shown = mask_settings(editor.services.settings)
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
    async with (
        FakeCollector(500) as collector,
        running(sending_to(collector, fake)) as editor,
    ):
        reply = await editor.chat("Hello.")
        assert reply.text == "Hi."
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
    [span] = collector.spans
    found = values_of(span)
    assert found["gen_ai.provider.name"] == "mistral_ai"
    assert found["byok.upstream"] == "mine"
