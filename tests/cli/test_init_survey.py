"""What byok init finds on this machine, what is chosen, and the lines it adds."""

import difflib
import tomllib
from collections.abc import Callable

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from byok.cli.init_steps import SettingsPlan, plan_settings
from byok.cli.init_survey import (
    ChosenModel,
    FoundBy,
    choose_models,
    list_models,
    make_candidate,
    one_key,
    survey,
)
from byok.core.errors import ConfigError, UpstreamError
from byok.core.platform.paths import find_paths
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import OPENAI_CHAT, PRESETS, Preset
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder
from tests.fakes.ollama_server import OllamaModel, OllamaServer
from tests.fakes.patience import PATIENCE
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


async def test_local_servers_are_found_with_their_models(
    local_at: Move, fake: FakeUpstream
) -> None:
    async with OllamaServer() as server:
        server.models = {"coder:7b": OllamaModel("tools"), "b": OllamaModel()}
        local_at(ollama=server.url, vllm=fake.url)
        found = await survey(settings(), ladder(), seconds=PATIENCE)
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
    (found,) = await survey(settings(), keys, seconds=PATIENCE)
    assert found.trouble == "it wants a key"
    assert fake.list_headers
    assert not [headers for headers in fake.list_headers if KEY in str(headers)]


async def test_names_that_no_client_could_send_back_are_left_out(
    local_at: Move, fake: FakeUpstream
) -> None:
    fake.models = ["good", "\x1b]0;mine\x07", "a\nb", "x" * 600, "", "\u202egood"]
    local_at(vllm=fake.url)
    (found,) = await survey(settings(), ladder(), seconds=PATIENCE)
    assert [model.id for model in found.models] == ["good"]


async def test_a_server_that_lets_one_wait_is_not_waited_for(
    local_at: Move, fake: FakeUpstream
) -> None:
    fake.models_delay = 60
    local_at(vllm=fake.url)
    assert await survey(settings(), ladder(), seconds=0.2) == []


async def test_another_program_at_the_port_is_no_server(local_at: Move) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>Hello</html>")

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        local_at(vllm=str(server.make_url("/v1")))
        assert await survey(settings(), ladder()) == []


async def test_keys_are_named_and_never_shown(local_at: Move) -> None:
    keys = ladder(OPENAI_API_KEY=KEY, HF_TOKEN=KEY, ANTHROPIC_API_KEY=KEY)
    found = await survey(settings(), keys)
    assert [(one.name, one.detail, one.is_offered) for one in found] == [
        ("anthropic", "key in ANTHROPIC_API_KEY", True),
        ("openai", "key in OPENAI_API_KEY", True),
        ("huggingface", "key in HF_TOKEN", False),
    ]
    assert KEY not in repr(found)


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


async def test_a_refusal_repeats_no_key(fake: FakeUpstream) -> None:
    fake.models_error = "not your key: {key}"
    own = settings(far={"base_url": fake.url})
    far = make_candidate("far", own.upstreams["far"], FoundBy.SETTINGS)
    with pytest.raises(UpstreamError) as caught:
        await list_models(far, own, one_key("far", KEY))
    assert KEY not in f"{caught.value} {caught.value.sentence} {caught.value.hint}"


def named(*names: str) -> list[ModelFacts]:
    return [ModelFacts(name) for name in names]


@pytest.mark.parametrize(
    ("vendor", "names", "chosen"),
    [
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
            "ollama",
            ["qwen3:8b", "zeta-2:8b"],
            {"default": "qwen3:8b", "completion": "", "next_edit": "zeta-2:8b"},
        ),
    ],
)
def test_models_are_chosen_by_purpose(
    vendor: str, names: list[str], chosen: dict[str, str]
) -> None:
    found = choose_models(vendor, named(*names))
    assert {one.purpose: one.model for one in found} == chosen
    assert all(one.reason for one in found)


OLLAMA = UpstreamSettings(type="ollama")
MODELS = [
    ChosenModel("default", "coder:30b", ""),
    ChosenModel("commit", "tiny", ""),
    ChosenModel("title", "tiny", ""),
    ChosenModel("completion", "", "that of chats"),
]
ROUTING = {
    "default": "byok:ollama:coder:30b",
    "models": {"commit": "byok:ollama:tiny", "title": "byok:ollama:tiny"},
}
COMMENTED = b"""# My settings, with care.

[server]   # where
port = 9000  # mine

# a comment that belongs to the next table
[chat]
temperature   =    0.5

"quoted key".x = 1
"""


def plan(before: bytes | None) -> SettingsPlan:
    one = make_candidate("ollama", OLLAMA, FoundBy.SERVER)
    return plan_settings(before, one, MODELS)


def removed_lines(before: bytes, plan: SettingsPlan) -> list[bytes]:
    old, new = before.splitlines(True), plan.after.splitlines(True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        line
        for tag, begin, end, _, _ in matcher.get_opcodes()
        if tag != "equal"
        for line in old[begin:end]
    ]


def test_a_new_file_names_the_upstream_and_the_models() -> None:
    made = plan(None)
    assert tomllib.loads(made.after.decode()) == {
        "upstreams": {"ollama": {"type": "ollama"}},
        "routing": ROUTING,
    }
    assert made.after.startswith(b"# Made by byok init.")


FILES = [
    b"# only a comment",
    COMMENTED.replace(b'"quoted key".x = 1\n', b""),
    b"[server]\r\nport = 9001\r\n# x\r\n",
    b"[upstreams]\nopenai = { model = 'm' }\n",
    b"routing.aliases.a = 'byok:ollama:x'\n",
]


@pytest.mark.parametrize("before", FILES)
def test_a_file_only_gets_lines_added(before: bytes) -> None:
    made = plan(before)
    # A last line without an end gets one.
    assert removed_lines(before, made) == (
        [] if before.endswith(b"\n") else [*before.splitlines()]
    )
    assert (b"\r\n" in made.after) is (b"\r\n" in before)
    if b"\r\n" in before:
        assert made.after.count(b"\r\n") == made.after.count(b"\n")
    given = tomllib.loads(made.after.decode())
    assert given["upstreams"]["ollama"] == {"type": "ollama"}
    assert given["routing"]["default"] == ROUTING["default"]
    assert given["routing"]["models"]["commit"] == "byok:ollama:tiny"


@pytest.mark.parametrize("before", [None, *FILES])
def test_the_second_time_changes_nothing(before: bytes | None) -> None:
    once = plan(before)
    assert once.after != (before or b"")
    again = plan(once.after)
    assert (again.after, again.kept) == (once.after, ())


def test_what_the_user_set_stays_and_is_named() -> None:
    before = (
        b"[upstreams.ollama]\nbase_url = 'http://127.0.0.1:9'\nmodel = 'x'\n"
        b"[routing]\ndefault = 'byok:ollama:mine'\n"
    )
    made = plan(before)
    assert made.after == before
    assert made.kept == (("routing", "default"),)


def test_models_do_not_join_a_default_of_another_upstream() -> None:
    before = b"[upstreams.openai]\n[routing]\ndefault = 'byok:openai:gpt-5'\n"
    given = tomllib.loads(plan(before).after.decode())
    assert given["routing"] == {"default": "byok:openai:gpt-5"}
    assert "ollama" in given["upstreams"]


@pytest.mark.parametrize("model", ['a"b', "a\\b", "[x] port", 'x"""y'])
def test_a_hostile_name_of_a_model_stays_a_value(model: str) -> None:
    one = make_candidate("ollama", OLLAMA, FoundBy.SERVER)
    made = plan_settings(None, one, [ChosenModel("default", model, "")])
    given = tomllib.loads(made.after.decode())
    assert given["routing"] == {"default": f"byok:ollama:{model}"}
    assert set(given) == {"upstreams", "routing"}


@pytest.mark.parametrize(
    "before",
    [
        b"not toml",
        b"routing = 3\n",
        b"[nonsense]\nx = 1\n",
    ],
)
def test_a_file_that_cannot_be_extended_is_refused(before: bytes) -> None:
    with pytest.raises(ConfigError, match="Nothing was changed"):
        plan(before)
