"""Settings become the model that makes vectors, and a member of a team."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError, NotAllowed
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.search.outside.consent import Consent
from byok.search.vectors.recipe import RECIPE
from byok.search.vectors.service import EmbeddingPlan
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.upstream.client import HttpUpstream
from byok.upstream.transport import Transports
from byok.wiring.embedders import (
    embedding_section,
    embedding_target,
    make_embedder,
    make_plan,
    make_team_index,
    with_embedder,
)
from byok.wiring.upstreams import UpstreamPool, make_spec
from tests.fakes.asker import Key
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.prompts import NONE
from tests.fakes.qdrant_members import SPACE, embed, key
from tests.fakes.qdrant_server import QdrantServer
from tests.fakes.ring import make_shared


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
            redactor=Redactor(),
        )
        space, _ = await embedder.probe()
        await embedder.embed_question("where?")
    assert (space.dimensions, space.recipe) == (4, RECIPE)
    assert space.document_prefix == "search_document: "
    assert server.texts[-1] == "my own: where?"


@pytest.mark.slow
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


def loaded(**sections: Any) -> Settings:
    return load_settings(find_paths().config, sections)


NEAR = {"near": {"base_url": "http://127.0.0.1:1/v1"}}
KEY = "correct-horse-battery-staple"
OWN = {"upstream": "near", "model": "small"}


@pytest.mark.parametrize(
    ("sections", "built"),
    [
        ({"upstreams": NEAR, "embeddings": OWN}, ["near"]),
        (
            {"upstreams": NEAR, "embeddings": {"upstream": "ollama", "model": "m"}},
            ["near", "ollama"],
        ),
        ({"embeddings": {"upstream": "ollama", "model": "m"}}, ["ollama"]),
    ],
)
def test_the_upstream_of_embeddings_is_built_too(
    sections: dict[str, Any], built: list[str]
) -> None:
    settings = loaded(**sections)
    assert sorted(with_embedder(settings.upstreams, settings)) == built


def test_consent_to_one_upstream_is_not_used_for_another_of_its_name() -> None:
    """Chats keep an upstream whose section was removed; a preset has its name."""
    kept = UpstreamSettings(base_url="https://far.example/v1")
    settings = loaded(embeddings={"upstream": "ollama", "model": "m"})
    with pytest.raises(ConfigError, match="another 'ollama'"):
        with_embedder({"ollama": kept}, settings)


@pytest.fixture
def pool(tmp_path: Path) -> UpstreamPool:
    return UpstreamPool(make_shared(tmp_path))


def plan(pool: UpstreamPool, consent: Consent, **sections: Any) -> EmbeddingPlan | None:
    settings = loaded(upstreams=NEAR, **sections)
    built = settings.upstreams
    if settings.embeddings.on:
        built = dict(with_embedder(built, settings))
    shared = make_shared()
    shared.redactor.add(KEY)
    return make_plan(settings, pool.build(settings, built, NONE), shared, consent)


async def test_a_plan_is_equal_while_nothing_it_depends_on_changes(
    tmp_path: Path, pool: UpstreamPool
) -> None:
    consent = Consent(tmp_path / "consent.json")
    assert plan(pool, consent) is None
    first = plan(pool, consent, embeddings=OWN)
    again = plan(pool, consent, embeddings=OWN, log={"level": "debug"})
    other = plan(pool, consent, embeddings={**OWN, "dimensions": 8})
    assert first
    assert again
    assert other
    assert first.target.host == "127.0.0.1:1"
    assert first.built_from == again.built_from != other.built_from
    assert first.target.model == "small"
    assert first.make_embedder()
    assert first.make_team() is None
    assert first.redact(f"a = {KEY}") == "a = [redacted]"


def settings_of(url: str, **more: Any) -> Settings:
    return Settings(embeddings={"team": {"url": url, "team": "platform", **more}})


async def test_without_a_salt_nobody_is_asked() -> None:
    transports = Transports()
    async with QdrantServer() as server:
        shared = make_shared(transports=transports)
        member = make_team_index(settings_of(server.url), shared)
        assert member is not None
        member.use(SPACE, embed("probe"))
        assert await member.fetch([key("a")]) == {}
        assert "byok keys set team-index/salt" in member.status.note
        assert server.calls == []
        await member.close()
    await transports.close()


@pytest.mark.parametrize(
    ("module", "url", "told"),
    [
        ("qdrant_client", "https://h", "qdrant-client"),
        ("asyncpg", "postgresql://u@h/d", "asyncpg"),
    ],
)
async def test_without_the_package_the_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch, module: str, url: str, told: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=told):
        make_team_index(settings_of(url), make_shared())


@pytest.mark.case("B127")
@pytest.mark.parametrize(
    ("host", "own", "asks_for_tls"),
    [
        ("127.0.0.1", {}, False),
        ("127.1", {}, True),  # to byok another machine, by its text
        ("127.1", {"allow_insecure_http": True}, False),
    ],
    ids=str,
)
async def test_a_database_on_another_machine_is_spoken_to_with_tls(
    host: str, own: dict[str, bool], asks_for_tls: bool
) -> None:
    pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    began: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        began.append(await reader.read(8))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = settings_of(f"postgresql://byok@{host}:{port}/byok", **own)
    environ = {"BYOK_KEY_TEAM_INDEX": KEY, "BYOK_KEY_TEAM_INDEX__SALT": "s" * 20}
    shared = make_shared(environ=environ)
    member = make_team_index(settings, shared)
    assert member is not None
    member.use(SPACE, embed("probe"))
    assert await member.fetch([key("a")]) == {}
    assert began, member.status.note
    request = int.from_bytes(began[0][4:], "big")
    assert request == (80877103 if asks_for_tls else 196608)
    await member.close()
    server.close()
    await server.wait_closed()
