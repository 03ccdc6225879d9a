"""Which upstreams there are, in which order, and for whom keys are looked for."""

import pytest

from byok.dialects.presets import PRESETS
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.wiring.apis import base_url_of
from byok.wiring.upstreams import (
    UpstreamSelection,
    default_id,
    select_upstreams,
    values_to_hide,
)
from tests.fakes.ring import FakeRing, store_of
from tests.fakes.scripted import FakeTransports, listing

BOX = {"base_url": "https://box.example/v1"}


def answering(*names: str) -> FakeTransports:
    """Transports on which these local presets answer."""
    urls = (PRESETS[name].base_url for name in names)
    return FakeTransports({url: listing() for url in urls})


def keys(**environ: str) -> KeyLadder:
    return KeyLadder(environ=environ, keyring=store_of(FakeRing()))


# --- the user chose ---


async def test_upstream_selection_prefers_the_settings_and_looks_for_nothing() -> None:
    settings = Settings(upstreams={"box": BOX, "openai": {}})
    transports = answering("ollama")
    choice = await select_upstreams(settings, "", transports, keys())
    assert list(choice.upstreams) == ["box", "openai"]
    assert choice.reason == "first of the settings"
    assert transports.requests == []


@pytest.mark.parametrize(
    ("wanted", "order", "base_url"),
    [
        ("openai", ["openai", "box"], PRESETS["openai"].base_url),
        ("box", ["box", "openai"], "https://box.example/v1"),
        ("groq", ["groq", "box", "openai"], PRESETS["groq"].base_url),
        ("demo", ["demo", "box", "openai"], ""),
        ("http://127.0.0.1:9", ["custom", "box", "openai"], "http://127.0.0.1:9/v1"),
    ],
)
async def test_the_upstream_of_the_command_line_comes_before_those_of_the_settings(
    wanted: str, order: list[str], base_url: str
) -> None:
    settings = Settings(upstreams={"box": BOX, "openai": {"model": "own"}})
    transports = answering("ollama")
    choice = await select_upstreams(settings, wanted, transports, keys())
    assert list(choice.upstreams) == order
    assert base_url_of(choice.upstreams[order[0]]) == base_url
    assert choice.upstreams["openai"].model == "own"
    assert choice.reason == "chosen by --upstream"
    assert transports.requests == []


# --- nobody chose ---


async def test_upstream_selection_takes_the_first_local_server_that_answers() -> None:
    transports = answering("vllm", "lmstudio")
    choice = await select_upstreams(
        Settings(), "", transports, keys(OPENAI_API_KEY="sk-x")
    )
    assert list(choice.upstreams) == ["lmstudio"]
    assert choice.reason == f"it answers at {PRESETS['lmstudio'].base_url}"
    asked = {str(request.url.host) for request in transports.requests}
    assert asked == {"127.0.0.1"}, "nobody beyond this machine is asked"


@pytest.mark.parametrize(
    ("environ", "name", "source"),
    [
        ({"OPENAI_API_KEY": "sk-x"}, "openai", "OPENAI_API_KEY"),
        ({"BYOK_KEY_GROQ": "sk-x"}, "groq", "BYOK_KEY_GROQ"),
        ({"XAI_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai", "OPENAI_API_KEY"),
    ],
)
async def test_without_a_local_server_an_upstream_with_a_key_is_taken(
    environ: dict[str, str], name: str, source: str
) -> None:
    choice = await select_upstreams(Settings(), "", answering(), keys(**environ))
    assert list(choice.upstreams) == [name]
    assert choice.reason == f"its key is in {source}"


async def test_upstream_selection_falls_back_to_the_demo_with_a_reason() -> None:
    choice = await select_upstreams(Settings(), "", answering(), keys())
    assert {n: u.type for n, u in choice.upstreams.items()} == {"demo": "demo"}
    assert "no local server answers" in choice.reason
    assert "no key was found" in choice.reason
    assert "--upstream" in choice.reason


async def test_upstream_selection_of_a_local_server_stays() -> None:
    found = await select_upstreams(Settings(), "", answering("ollama"), keys())
    transports, ladder = answering("lmstudio"), keys(OPENAI_API_KEY="sk-x")
    later = await select_upstreams(Settings(), "", transports, ladder, found)
    assert later.upstreams == found.upstreams
    assert transports.requests == []


async def test_the_demo_gives_way_to_the_first_upstream_that_is_found() -> None:
    demo = await select_upstreams(Settings(), "", answering(), keys())
    later = await select_upstreams(Settings(), "", answering("ollama"), keys(), demo)
    assert list(later.upstreams) == ["ollama"]


async def test_upstream_selection_survives_a_keyring_failure() -> None:
    ladder = KeyLadder(environ={}, keyring=store_of(FakeRing(error=RuntimeError("x"))))
    choice = await select_upstreams(Settings(), "", answering(), ladder)
    assert list(choice.upstreams) == ["demo"]


@pytest.mark.parametrize(
    ("model", "default"),
    [
        ("", "fast"),
        ("m", "byok:box:m"),
        ("byok:other:m", "byok:other:m"),
        ("fast", "fast"),
        ("byok:fast", "byok:fast"),
    ],
)
def test_the_default_model_may_be_an_alias(model: str, default: str) -> None:
    box = {"base_url": "https://h/v1"}
    routing = {"default": "fast", "aliases": {"fast": "byok:box:n"}}
    settings = Settings.model_validate({"upstreams": {"box": box}, "routing": routing})
    chosen = UpstreamSelection(settings.upstreams, "")
    assert default_id(chosen, settings, model) == default


@pytest.mark.parametrize("default", ["byok:box:n", "box:n", "fast"])
@pytest.mark.parametrize(
    ("wanted", "counts"), [("", True), ("box", True), ("https://other/v1", False)]
)
async def test_an_upstream_that_is_named_answers_whatever_the_default_is(
    wanted: str, counts: bool, default: str
) -> None:
    box = {"base_url": "https://h/v1"}
    routing = {"default": default, "aliases": {"fast": "byok:box:n"}}
    settings = Settings.model_validate({"upstreams": {"box": box}, "routing": routing})
    chosen = await select_upstreams(settings, wanted, answering(), keys())
    assert default_id(chosen, settings, "") == (default if counts else "")


@pytest.mark.parametrize("variable", ["HF_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"])
async def test_a_token_with_other_uses_sends_no_code_by_itself(variable: str) -> None:
    found = await select_upstreams(
        Settings(), "", FakeTransports(), keys(**{variable: "token"})
    )
    assert list(found.upstreams) == ["demo"]


async def test_secrets_of_the_settings_are_hidden_wherever_they_stand() -> None:
    model = "claude-sonnet-4-5-20250929"
    body = {
        "routing": {"account": "7fK2-99xQ-canary-0123", "order": ["anthropic", model]},
        "tier": "priority",
        "ids": [{"x": "canary0123456789abc"}],
    }
    own = {
        **BOX,
        "model": model,
        "extra_body": body,
        "headers": {"X-Team": "in-a-header"},
        "query": {"v": "in-a-query"},
    }
    chat = {"extra_body": {"account": "canary-of-all-99xQ7fK2", "best": model}}
    settings = Settings(upstreams={"box": own}, chat=chat)
    choice = await select_upstreams(settings, "", answering(), keys())
    assert set(values_to_hide(settings, choice.upstreams.values())) == {
        *("in-a-header", "in-a-query"),
        *("7fK2-99xQ-canary-0123", "canary0123456789abc", "canary-of-all-99xQ7fK2"),
    }
