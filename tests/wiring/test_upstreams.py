"""One section of the settings becomes one upstream, reached as the settings say."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError, UpstreamUnreachable
from byok.core.redact import Redactor
from byok.dialects.fim_templates import FimMode, fim_profile_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.settings import Settings, UpstreamSettings
from byok.settings.keys import KeyLadder
from byok.upstream.base import Destination
from byok.upstream.client import HttpUpstream
from byok.upstream.own_questions import Summariser
from byok.upstream.timeouts import LOCAL, REASONING, REMOTE, Timeouts
from byok.upstream.transport import Route
from byok.wiring.key_sources import official_key_lookup
from byok.wiring.upstreams import (
    Helpers,
    choose_model,
    make_official,
    make_spec,
    make_upstream,
    open_probed,
)
from tests.fakes.ring import make_shared
from tests.fakes.scripted import FakeTransports, listing
from tests.fakes.upstream import FakeUpstream

LONGER = {"first_byte": 900.0, "idle": 900.0, "comments_only": 900.0, "total": 1800.0}


@pytest.mark.parametrize(
    ("section", "route", "patience"),
    [
        ({"base_url": "https://h/v1"}, ("http://common:1", "common.pem"), REMOTE),
        ({"base_url": "http://127.0.0.1:9/v1"}, ("", "common.pem"), LOCAL),
        (
            {"base_url": "https://h/v1", "proxy": "http://own:1", "ca_file": "own.pem"},
            ("http://own:1", "own.pem"),
            REMOTE,
        ),
        (
            {"base_url": "http://localhost:9/v1", "proxy": "http://own:1"},
            ("", "common.pem"),
            LOCAL,
        ),
        (
            {"base_url": "https://h/v1", "timeout": 900},
            ("http://common:1", "common.pem"),
            Timeouts(**LONGER),
        ),
    ],
    ids=["remote", "local", "own route", "local never by proxy", "own timeout"],
)
def test_how_an_upstream_is_reached(
    section: dict[str, Any], route: tuple[str, str], patience: Timeouts
) -> None:
    network = {"proxy": "http://common:1", "ca_file": "common.pem"}
    settings = Settings(network=network, upstreams={"box": section})
    spec = make_spec("box", settings.upstreams["box"], settings)
    assert spec.route == Route(*route)
    assert spec.timeouts == patience
    slow = REASONING if patience is REMOTE else patience
    assert spec.timeouts_for(ModelFacts("m", thinking=True)) == slow
    assert (spec.breaker_pause < 10) is (patience is LOCAL)


@pytest.mark.parametrize(
    ("section", "vendor"),
    [
        ({"base_url": "https://api.deepseek.com/v1"}, "deepseek"),
        ({"base_url": "https://h/v1"}, "openai_compatible"),
        ({"type": "gemini", "dialect": "openai_chat"}, "gemini"),
    ],
)
def test_upstream_quirks_follow_the_type_or_the_address(
    section: dict[str, Any], vendor: str
) -> None:
    settings = Settings(upstreams={"box": section})
    spec = make_spec("box", settings.upstreams["box"], settings)
    assert spec.api.dialect == OpenAIChat.of(vendor)
    assert (*spec.fim,) == fim_profile_of(vendor).modes


def test_upstream_fim_mode_of_the_settings_is_the_only_one() -> None:
    settings = Settings(
        upstreams={"box": {"type": "llamacpp"}}, completion={"way": "template"}
    )
    spec = make_spec("box", settings.upstreams["box"], settings)
    assert [*spec.fim] == [FimMode.TEMPLATE]


def test_ollama_has_fim_modes_of_its_own_api() -> None:
    settings = Settings(upstreams={"box": {"type": "ollama"}})
    spec = make_spec("box", settings.upstreams["box"], settings)
    assert [*spec.fim] == [FimMode.SUFFIX, FimMode.TEMPLATE, FimMode.CHAT]
    assert [api.base_url for api in spec.apis] == [
        "http://127.0.0.1:11434",
        "http://127.0.0.1:11434/v1",
    ]


def test_what_the_user_says_about_models_is_in_the_specification() -> None:
    section = {
        "type": "openai",
        "context_window": 9000,
        "facts": {"m": {"window": 8000, "images": False}},
    }
    settings = Settings(upstreams={"box": section})
    spec = make_spec("box", settings.upstreams["box"], settings)
    assert spec.vendor == "openai"
    assert spec.facts == {
        "m": ModelFacts("m", window=8000, images=False),
        "": ModelFacts("", window=9000),
    }


async def _nowhere(model: str) -> Destination:
    raise AssertionError(model)


async def test_an_upstream_is_asked_by_its_route(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    section = {"base_url": "https://h/v1", "num_ctx": 9000}
    box = Settings(upstreams={"box": section}).upstreams["box"]
    transports = FakeTransports({box.base_url: listing()})
    made = make_upstream(
        make_spec("box", box, Settings()),
        box,
        make_shared(tmp_path, transports, {"BYOK_KEY_BOX": "some-key"}),
        Helpers(Summariser("", _nowhere)),
    )
    assert await made.upstream.models() == ["m"]
    assert made.known
    assert made.known.facts("m") == ModelFacts("m")
    assert transports.routes == [Route()]
    assert transports.requests[0].headers["Authorization"] == "Bearer some-key"
    assert "num_ctx has no effect" in caplog.text


@pytest.mark.parametrize(
    ("base_url", "route"),
    [
        ("https://h.example/base", ("http://common:1", "common.pem")),
        ("http://127.0.0.1:9", ("", "common.pem")),
    ],
)
async def test_upstream_official_service_is_requested_by_its_route(
    base_url: str, route: tuple[str, str]
) -> None:
    network = {"proxy": "http://common:1", "ca_file": "common.pem"}
    settings = Settings(network=network, routing={"official": {"base_url": base_url}})
    transports = FakeTransports()
    environ = {"BYOK_KEY_OFFICIAL": "some-token", "BYOK_KEY_BOX": "some-key"}
    shared = make_shared(transports=transports, environ=environ)
    key = shared.make_key(official_key_lookup(settings))
    official = make_official(settings, shared, key)
    with pytest.raises(UpstreamUnreachable):
        async with official.ask("/chat", b"{}", {}, 5):
            pass
    assert transports.routes == [Route(*route)]
    [request] = transports.requests
    assert str(request.url) == f"{base_url}/chat"
    assert request.headers["Authorization"] == "Bearer some-token"


# The upstream of a probe: with its own API and keys, and nothing around it


def probed(
    section: UpstreamSettings, **environ: str
) -> AbstractAsyncContextManager[HttpUpstream]:
    ladder, settings = KeyLadder(environ=environ), Settings(upstreams={"box": section})
    return open_probed("box", section, settings, ladder, Redactor())


async def test_a_probed_upstream_sends_its_own_key(fake: FakeUpstream) -> None:
    section = UpstreamSettings(base_url=fake.url)
    async with probed(section, BYOK_KEY_BOX="sk-0123456789") as upstream:
        assert await choose_model(upstream, section) == "fake-model"
    assert fake.list_headers[0]["Authorization"] == "Bearer sk-0123456789"


@pytest.mark.parametrize(
    ("fields", "model"),
    [({"model": "a", "models": ["b"]}, "a"), ({"models": ["b"]}, "b")],
)
async def test_a_model_of_the_settings_is_probed_first(
    fake: FakeUpstream, fields: dict[str, Any], model: str
) -> None:
    section = UpstreamSettings(base_url=fake.url, **fields)
    async with probed(section) as upstream:
        assert await choose_model(upstream, section) == model
    assert fake.list_headers == []


async def test_an_upstream_without_models_cannot_be_probed(fake: FakeUpstream) -> None:
    fake.models = []
    section = UpstreamSettings(base_url=fake.url)
    async with probed(section) as upstream:
        with pytest.raises(ConfigError) as caught:
            await choose_model(upstream, section)
    assert "byok probe box/MODEL" in caught.value.hint


async def test_the_demo_cannot_be_probed() -> None:
    with pytest.raises(ConfigError):
        async with probed(UpstreamSettings(type="demo")):
            pass
