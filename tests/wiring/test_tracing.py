"""Spans name the vendor of an upstream, however the user calls it."""

from tests.fakes.collector import FakeCollector, values_of
from tests.fakes.daemon import running
from tests.fakes.upstream import FakeUpstream


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
