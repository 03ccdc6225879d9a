"""What a name of a key means."""

import pytest

from byok.core.errors import ConfigError
from byok.settings import Settings
from byok.wiring.key_sources import key_named

SETTINGS = Settings(
    upstreams={
        "mine": {"base_url": "https://a.example/v1"},
        "two": {"base_url": "https://b.example/v1", "key_names": ["work", "home"]},
        "demo": {},
    },
    routing={"official": {"base_url": "https://o.example"}},
    embeddings={
        "upstream": "mine",
        "model": "m",
        "team": {"url": "https://q.example", "team": "t"},
    },
)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("mine", "mine@https://a.example"),
        ("two/home", "two/home@https://b.example"),
        ("groq", "groq@https://api.groq.com"),
        ("official", "official@https://o.example"),
        ("team-index", "team-index@https://q.example"),
        ("team-index/salt", "team-index/salt@https://q.example"),
    ],
)
def test_a_key_is_stored_for_one_origin(name: str, entry: str) -> None:
    assert key_named(name, SETTINGS).entry == entry


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nobody", "Unknown upstream"),
        ("two", "several keys"),
        ("two/other", "several keys"),
        ("mine/x", "no key 'x'"),
        ("demo", "needs no key"),
    ],
)
def test_a_name_without_a_key_is_refused(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        key_named(name, SETTINGS)


def test_the_official_service_needs_an_address() -> None:
    with pytest.raises(ConfigError, match="is not set"):
        key_named("official", Settings())
