"""What byok init finds on this machine, and what is chosen of it."""

from collections.abc import Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from byok.cli.init_survey import (
    Candidate,
    FoundBy,
    best_candidate,
    choose_models,
    find_source,
    list_models,
    no_keys,
    one_key,
    survey,
)
from byok.core.errors import ConfigError, UpstreamError
from byok.core.platform.paths import find_paths
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import OPENAI_CHAT, PRESETS, Preset
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder
from byok.settings.keys.keyring_store import KeyringStore
from tests.fakes.ollama_server import OllamaModel, OllamaServer
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.upstream import FakeUpstream, dead_url

KEY = "sk-canary0123456789"
Move = Callable[..., None]


def settings(**upstreams: dict[str, object]) -> Settings:
    return load_settings(find_paths().config, {"upstreams": upstreams})


def ladder(**environ: str) -> KeyLadder:
    return KeyLadder(environ=environ, keyring=store_of(FakeRing()))


@pytest.fixture
def local_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Move the local presets: `local_at(vllm=url)`; nobody listens at the others."""
    for name in [n for n, preset in PRESETS.items() if preset.local]:
        dialect = PRESETS[name].dialect
        monkeypatch.setitem(PRESETS, name, Preset({dialect: dead_url()}, local=True))

    def move(**urls: str) -> None:
        for name, url in urls.items():
            dialect = PRESETS[name].dialect
            address = url.removesuffix("/v1") if dialect != OPENAI_CHAT else url
            monkeypatch.setitem(PRESETS, name, Preset({dialect: address}, local=True))

    return move


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


ONE = ModelFacts("m")


def candidate(
    name: str = "a",
    models: tuple[ModelFacts, ...] = (),
    key_source: str = "",
    trouble: str = "",
    is_offered: bool = True,
) -> Candidate:
    section = UpstreamSettings(type="ollama")
    found = (FoundBy.SERVER, models, key_source, trouble, is_offered)
    return Candidate(name, section, "http://127.0.0.1:1", *found)


@pytest.mark.parametrize(
    ("one", "detail"),
    [
        (candidate(), ""),
        (candidate(models=(ONE,)), "1 model"),
        (candidate(models=(ONE, ONE)), "2 models"),
        (candidate(key_source="OPENAI_API_KEY"), "key in OPENAI_API_KEY"),
        (candidate(models=(ONE,), key_source="vault"), "key in vault, 1 model"),
        (candidate(models=(ONE,), trouble="it wants a key"), "it wants a key"),
    ],
)
def test_a_candidate_says_what_counts(one: Candidate, detail: str) -> None:
    assert one.detail == detail


def test_the_best_is_the_first_without_trouble_that_is_offered() -> None:
    broken, shy = candidate("b", trouble="no"), candidate("c", is_offered=False)
    assert best_candidate([broken, shy, candidate("d"), candidate("e")]) == candidate(
        "d"
    )
    assert best_candidate([broken, shy]) is None


def named(*names: str) -> list[ModelFacts]:
    return [ModelFacts(name) for name in names]


@pytest.mark.parametrize(
    ("vendor", "names", "chosen"),
    [
        ("ollama", [], {}),
        ("ollama", ["odd"], {"default": "odd", "completion": ""}),
        (
            "ollama",
            ["nomic-embed-text", "qwen2.5-coder:1.5b-base", "qwen3-coder:30b"],
            {"default": "qwen3-coder:30b", "completion": "qwen2.5-coder:1.5b-base"},
        ),
        (
            "anthropic",
            ["claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"],
            {
                "default": "claude-sonnet-4-5",
                "commit": "claude-haiku-4-5",
                "title": "claude-haiku-4-5",
                "rerank": "claude-haiku-4-5",
                "completion": "claude-haiku-4-5",
            },
        ),
        (
            "mistral",
            ["mistral-medium-latest", "mistral-small-latest", "codestral-latest"],
            {
                "default": "mistral-medium-latest",
                "commit": "mistral-small-latest",
                "title": "mistral-small-latest",
                "rerank": "mistral-small-latest",
                "completion": "codestral-latest",
            },
        ),
    ],
)
def test_models_are_chosen_by_purpose(
    vendor: str, names: list[str], chosen: dict[str, str]
) -> None:
    found = choose_models(vendor, named(*names))
    assert {one.purpose: one.model for one in found} == chosen
    assert all(one.reason for one in found)


def test_the_reason_says_what_is_known() -> None:
    facts = ModelFacts("qwen3-coder:30b", window=262_144, tools=True)
    chat, completion = choose_models("ollama", [facts])
    assert chat.reason == "the only one listed, takes tools, window of 262,144 tokens"
    assert "FIM" in completion.reason


def test_a_completion_model_that_fills_gaps_is_told_from_a_quick_one() -> None:
    filling = choose_models("ollama", named("qwen3:8b", "qwen2.5-coder:1.5b-base"))
    quick = choose_models("anthropic", named("claude-haiku-4-5", "claude-sonnet-4-5"))
    assert filling[-1].reason == "fills gaps (FIM)"
    assert quick[-1].reason.startswith("quick")
