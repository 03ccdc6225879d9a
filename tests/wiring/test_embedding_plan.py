from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ByokError, ConfigError
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.search.vectors.consent import Consent
from byok.search.vectors.service import EmbeddingPlan
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder
from byok.upstream.profiles import Profiles
from byok.upstream.provider_data_store import ProviderDataStore
from byok.upstream.transport import Transports
from byok.wiring.embedders import make_plan, with_embedder
from byok.wiring.upstreams import UpstreamPool
from tests.fakes.prompts import NONE


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
    return UpstreamPool(
        Transports(),
        KeyLadder(environ={}),
        Redactor(),
        ProviderDataStore(tmp_path / "kept.db"),
        Profiles(tmp_path / "profiles.json"),
    )


def plan(pool: UpstreamPool, consent: Consent, **sections: Any) -> EmbeddingPlan | None:
    settings = loaded(upstreams=NEAR, **sections)
    built = settings.upstreams
    if settings.embeddings.on:
        built = dict(with_embedder(built, settings))
    redactor = Redactor()
    redactor.add(KEY)
    return make_plan(
        settings,
        pool.build(settings, built, NONE),
        consent=consent,
        transports=Transports(),
        ladder=KeyLadder(environ={}),
        redactor=redactor,
    )


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
    assert first.make_embedder().model == "small"
    assert first.make_team() is None
    assert first.redact(f"a = {KEY}") == "a = [redacted]"


async def test_an_upstream_that_is_not_there_is_named(
    tmp_path: Path, pool: UpstreamPool
) -> None:
    with pytest.raises(ByokError, match="nobody"):
        plan(
            pool,
            Consent(tmp_path / "consent.json"),
            embeddings={"upstream": "nobody", "model": "small"},
        )
