"""From the settings to the model that makes vectors."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError, NotAllowed
from byok.core.redact import Redactor
from byok.search.vectors.consent import Consent
from byok.settings import Settings
from byok.upstream.client import HttpUpstream
from byok.upstream.transport import Transports
from byok.wiring.embedders import embedding_section, embedding_target, make_embedder
from byok.wiring.upstreams import make_spec
from tests.fakes.asker import Key
from tests.fakes.embedding_server import EmbeddingServer


def settings(upstream: str, model: str = "m", **more: Any) -> Settings:
    upstreams: dict[str, Any] = {
        "box": {"base_url": "http://localhost:1234/v1"},
        "gate": {"base_url": "https://gate.example/openai/v1"},
        "six": {"base_url": "https://[2001:db8::1]:8443/v1"},
    }
    embeddings: Any = {"upstream": upstream, "model": model, **more}
    return Settings.model_validate({"upstreams": upstreams, "embeddings": embeddings})


@pytest.mark.parametrize(
    ("upstream", "host", "local"),
    [
        ("box", "localhost:1234", True),
        ("gate", "gate.example:443", False),
        ("six", "[2001:db8::1]:8443", False),
        ("ollama", "127.0.0.1:11434", True),
        ("openai", "api.openai.com:443", False),
        ("gemini", "generativelanguage.googleapis.com:443", False),
    ],
)
def test_target_is_the_host_of_the_api_with_embeddings(
    upstream: str, host: str, local: bool
) -> None:
    target = embedding_target(settings(upstream))
    assert target is not None
    assert (target.upstream, target.host, target.is_local) == (upstream, host, local)


def test_without_an_upstream_there_is_no_target() -> None:
    assert embedding_target(Settings()) is None


def test_an_upstream_that_does_not_exist_is_told() -> None:
    with pytest.raises(ConfigError, match="Unknown upstream 'bax'"):
        embedding_target(settings("bax"))


@pytest.mark.parametrize(
    ("upstream", "more", "price"),
    [
        ("openai", {"model": "text-embedding-3-small"}, 0.02),
        ("openai", {"model": "text-embedding-3-small", "price": 7.0}, 7.0),
        ("openai", {"model": "unknown"}, None),
        ("gate", {"model": "text-embedding-3-small"}, None),
        ("ollama", {}, 0.0),
    ],
    ids=str,
)
def test_price_is_the_user_s_own_or_the_vendor_s(
    upstream: str, more: dict[str, Any], price: float | None
) -> None:
    target = embedding_target(settings(upstream, **more))
    assert target is not None
    assert target.price == price


@pytest.fixture
async def transports() -> AsyncIterator[Transports]:
    made = Transports()
    yield made
    await made.close()


async def test_embedder_does_what_the_settings_say(
    transports: Transports, tmp_path: Path
) -> None:
    async with EmbeddingServer(model="nomic-embed-text") as server:
        given = Settings.model_validate(
            {
                "upstreams": {"box": {"base_url": server.url, "timeout": 7}},
                "embeddings": {
                    "upstream": "box",
                    "model": "nomic-embed-text",
                    "dimensions": 4,
                    "query_prefix": "my own: ",
                },
            }
        )
        target = embedding_target(given)
        assert target is not None
        name, section = embedding_section(given)
        embedder = make_embedder(
            given,
            target,
            HttpUpstream(make_spec(name, section, given), transports, Key()),
            consent=Consent(tmp_path / "embeddings.json"),
            recipe="9",
            redactor=Redactor(),
        )
        space, _ = await embedder.probe()
        await embedder.embed_question("where?")
    assert (space.dimensions, space.recipe) == (4, "9")
    assert space.document_prefix == "search_document: "
    assert server.texts[-1] == "my own: where?"
    assert embedder.host == target.host


async def test_a_remote_model_gets_nothing_before_consent_and_then_all(
    transports: Transports, tmp_path: Path
) -> None:
    async with EmbeddingServer(model="m") as server:
        # A proxy is asked for every remote host, so it sees each attempt.
        proxy = server.url.removesuffix("/v1")
        given = settings("gate").model_copy(
            update={"network": Settings().network.model_copy(update={"proxy": proxy})}
        )
        target = embedding_target(given)
        assert target is not None
        name, section = embedding_section(given)
        consent = Consent(tmp_path / "embeddings.json")
        embedder = make_embedder(
            given,
            target,
            HttpUpstream(make_spec(name, section, given), transports, Key()),
            consent=consent,
            recipe="1",
            redactor=Redactor(),
        )
        for ask in (embedder.probe, lambda: embedder.embed_question("where?")):
            with pytest.raises(NotAllowed, match=r"gate\.example:443"):
                await ask()
        assert server.asked == 0
        consent.give(target.host, target.model)
        with pytest.raises(Exception, match="proxy refused"):
            await embedder.embed_question("where?")
        assert server.asked > 0
