"""The upstream of a probe: with its own API and keys, and nothing around it."""

import pytest

from byok.core.errors import ConfigError
from byok.core.redact import Redactor
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.wiring.upstreams import choose_model, open_probed
from tests.fakes.upstream import FakeUpstream


def settings_of(url: str, **fields: object) -> Settings:
    return Settings.model_validate({"upstreams": {"box": {"base_url": url, **fields}}})


async def test_a_probed_upstream_sends_its_own_key(fake: FakeUpstream) -> None:
    settings = settings_of(fake.url)
    ladder = KeyLadder(environ={"BYOK_KEY_BOX": "sk-0123456789"})
    section = settings.upstreams["box"]
    async with open_probed("box", section, settings, ladder, Redactor()) as upstream:
        assert await choose_model(upstream, section) == "fake-model"
    assert fake.list_headers[0]["Authorization"] == "Bearer sk-0123456789"


@pytest.mark.parametrize(
    ("fields", "model"),
    [({"model": "a", "models": ["b"]}, "a"), ({"models": ["b"]}, "b")],
)
async def test_a_model_of_the_settings_is_probed_first(
    fake: FakeUpstream, fields: dict[str, object], model: str
) -> None:
    settings = settings_of(fake.url, **fields)
    section = settings.upstreams["box"]
    async with open_probed(
        "box", section, settings, KeyLadder(environ={}), Redactor()
    ) as upstream:
        assert await choose_model(upstream, section) == model
    assert fake.list_headers == []


async def test_an_upstream_without_models_cannot_be_probed(fake: FakeUpstream) -> None:
    fake.models = []
    settings = settings_of(fake.url)
    section = settings.upstreams["box"]
    async with open_probed(
        "box", section, settings, KeyLadder(environ={}), Redactor()
    ) as upstream:
        with pytest.raises(ConfigError) as caught:
            await choose_model(upstream, section)
    assert "byok probe box/MODEL" in caught.value.hint


async def test_the_demo_cannot_be_probed() -> None:
    settings = Settings.model_validate({"upstreams": {"demo": {}}})
    with pytest.raises(ConfigError, match="demo"):
        async with open_probed(
            "demo",
            settings.upstreams["demo"],
            settings,
            KeyLadder(environ={}),
            Redactor(),
        ):
            pass
