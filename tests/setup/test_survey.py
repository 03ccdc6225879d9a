"""What is found on this machine, and what it is asked."""

from collections.abc import Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from byok.config import Settings, load_settings
from byok.errors import ConfigError, UpstreamError
from byok.keys import KeyLadder
from byok.keys.keyring_store import KeyringStore
from byok.platform.paths import find_paths
from byok.setup.candidate import FoundBy
from byok.setup.survey import find_source, list_models, no_keys, one_key, survey
from tests.fakes.ollama_server import OllamaModel, OllamaServer
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import FakeUpstream, dead_url

KEY = "sk-canary0123456789"
Move = Callable[..., None]


def settings(**upstreams: dict[str, object]) -> Settings:
    return load_settings(find_paths().config, {"upstreams": upstreams})


def ladder(**environ: str) -> KeyLadder:
    return KeyLadder(environ=environ, keyring=store_of(FakeRing()))


async def test_nothing_is_found_where_nothing_is(local_at: Move) -> None:
    assert await survey(settings(), ladder()) == []


async def test_local_servers_are_found_with_their_models(
    local_at: Move, fake: FakeUpstream
) -> None:
    async with OllamaServer() as server:
        server.models = {"coder:7b": OllamaModel("tools"), "b": OllamaModel()}
        local_at(ollama=server.url, vllm=fake.url)
        found = await survey(settings(), ladder())
    assert [(one.name, one.found_by, one.detail) for one in found] == [
        ("ollama", FoundBy.SERVER, "2 models"),
        ("vllm", FoundBy.SERVER, "1 model"),
    ]
    assert [model.id for model in found[0].models] == ["coder:7b", "b"]


async def test_a_local_server_is_shown_no_key(
    local_at: Move, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_KEY_VLLM", KEY)
    local_at(vllm=fake.url)
    fake.models_error = "a key, please"
    ring = FakeRing()
    ring.kept["byok", f"vllm@{fake.url.removesuffix('/v1')}"] = KEY
    keys = KeyLadder(environ={"BYOK_KEY_VLLM": KEY}, keyring=store_of(ring))
    (found,) = await survey(settings(), keys)
    assert found.trouble == "it wants a key"
    assert fake.list_headers
    assert not [headers for headers in fake.list_headers if KEY in str(headers)]


async def test_names_that_no_client_could_send_back_are_left_out(
    local_at: Move, fake: FakeUpstream
) -> None:
    fake.models = ["good", "\x1b]0;mine\x07", "a\nb", "x" * 600, "", "\u202egood"]
    local_at(vllm=fake.url)
    (found,) = await survey(settings(), ladder())
    assert [model.id for model in found.models] == ["good"]


async def test_a_list_has_a_limit(local_at: Move, fake: FakeUpstream) -> None:
    fake.models = [f"m{number}" for number in range(2000)]
    local_at(vllm=fake.url)
    (found,) = await survey(settings(), ladder())
    assert len(found.models) == 500


async def test_a_server_that_lets_one_wait_is_not_waited_for(
    local_at: Move, fake: FakeUpstream
) -> None:
    fake.models_delay = 60
    local_at(vllm=fake.url)
    assert await survey(settings(), ladder(), seconds=0.2) == []


@pytest.mark.parametrize("body", ["<html>Hello</html>", "[[[", "{" * 5000])
async def test_another_program_at_the_port_is_no_server(
    local_at: Move, body: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        local_at(vllm=str(server.make_url("/v1")))
        assert await survey(settings(), ladder()) == []


async def test_an_ollama_without_models_is_no_choice(local_at: Move) -> None:
    async with OllamaServer() as server:
        server.models = {}
        local_at(ollama=server.url)
        (found,) = await survey(settings(), ladder())
    assert found.trouble == "it has no models yet"


async def test_keys_are_named_and_never_shown(local_at: Move) -> None:
    keys = ladder(OPENAI_API_KEY=KEY, HF_TOKEN=KEY, ANTHROPIC_API_KEY=KEY)
    found = await survey(settings(), keys)
    assert [(one.name, one.detail, one.is_offered) for one in found] == [
        ("anthropic", "key in ANTHROPIC_API_KEY", True),
        ("openai", "key in OPENAI_API_KEY", True),
        ("huggingface", "key in HF_TOKEN", False),
    ]
    assert KEY not in repr(found)


async def test_a_value_that_is_no_key_is_a_trouble(local_at: Move) -> None:
    (found,) = await survey(settings(), ladder(OPENAI_API_KEY="sk-a b c\u00e9"))
    assert (found.name, "OPENAI_API_KEY" in found.trouble) == ("openai", True)


async def test_upstreams_of_the_settings_come_first_and_the_default_before_all(
    local_at: Move, fake: FakeUpstream
) -> None:
    local_at(vllm=fake.url)
    own = load_settings(
        find_paths().config,
        {
            "upstreams": {
                "gone": {"base_url": dead_url()},
                "far": {"base_url": "https://llm.example/v1"},
                "openai": {},
                "near": {"base_url": fake.url},
                "demo": {},
            },
            "routing": {"default": "byok:near:m"},
        },
    )
    found = await survey(own, ladder(BYOK_KEY_OPENAI=KEY))
    assert [(one.name, one.detail) for one in found] == [
        ("near", "1 model"),
        ("gone", "it does not answer"),
        ("far", "no key was found"),
        ("openai", "key in BYOK_KEY_OPENAI"),
        ("demo", "1 model"),
        ("vllm", "1 model"),
    ]


async def test_models_are_listed_with_the_one_key(fake: FakeUpstream) -> None:
    own = settings(far={"base_url": fake.url})
    section = own.upstreams["far"]
    (model,) = await list_models("far", section, own, one_key("far", KEY))
    assert model.id == "fake-model"
    assert fake.list_headers[-1]["Authorization"] == f"Bearer {KEY}"


async def test_a_refusal_repeats_no_key(fake: FakeUpstream) -> None:
    fake.models_error = "not your key: {key}"
    own = settings(far={"base_url": fake.url})
    section = own.upstreams["far"]
    with pytest.raises(UpstreamError) as caught:
        await list_models("far", section, own, one_key("far", KEY))
    assert KEY not in f"{caught.value} {caught.value.sentence} {caught.value.hint}"


async def test_a_vendor_without_a_key_is_not_asked() -> None:
    own = settings(openai={})
    with pytest.raises(ConfigError):
        await list_models("openai", own.upstreams["openai"], own, no_keys())


def test_the_source_of_a_key_is_found_or_why_there_is_none() -> None:
    section = settings(openai={}).upstreams["openai"]
    assert find_source("openai", section, ladder(OPENAI_API_KEY=KEY)) == (
        "OPENAI_API_KEY",
        "",
    )
    assert find_source("openai", section, ladder()) == ("", "no key was found")
    assert isinstance(no_keys().keyring, KeyringStore)
