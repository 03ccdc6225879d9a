"""Which upstreams there are, in which order, and for whom keys are looked for."""

import httpx
import pytest

from byok.config import Settings
from byok.dialects.presets import PRESETS
from byok.errors import KeyMissing
from byok.keys import KeyLadder, KeyWanted
from byok.keys.lookup import UpstreamKey
from byok.keys.vault import Vault
from byok.platform.paths import Paths, find_paths
from byok.redact import Redactor
from byok.wiring.upstream_selection import (
    base_url_of,
    key_wanted,
    make_ladder,
    official_wanted,
    select_upstreams,
)
from tests.fakes.lister import FakeTransports, listing
from tests.fakes.ring import FakeRing, store_of

BOX = {"base_url": "https://box.example/v1"}


def answering(*names: str) -> FakeTransports:
    """Transports on which these local presets answer."""
    urls = (PRESETS[name].base_url for name in names)
    return FakeTransports({url: listing() for url in urls})


def keys(**environ: str) -> KeyLadder:
    return KeyLadder(environ=environ, keyring=store_of(FakeRing()))


@pytest.fixture
def paths() -> Paths:
    return find_paths()


# --- the user chose ---


async def test_the_settings_come_first_and_nothing_is_looked_for() -> None:
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


async def test_a_url_wins_over_a_section_that_is_called_custom() -> None:
    settings = Settings(upstreams={"custom": BOX})
    choice = await select_upstreams(
        settings, "https://other.example/v1", answering(), keys()
    )
    assert choice.upstreams["custom"].base_url == "https://other.example/v1"


# --- nobody chose ---


async def test_the_first_local_server_that_answers_is_taken() -> None:
    transports = answering("vllm", "lmstudio")
    choice = await select_upstreams(
        Settings(), "", transports, keys(OPENAI_API_KEY="sk-x")
    )
    assert list(choice.upstreams) == ["lmstudio"]
    assert choice.reason == f"it answers at {PRESETS['lmstudio'].base_url}"
    asked = {str(request.url.host) for request in transports.requests}
    assert asked == {"127.0.0.1"}, "nobody beyond this machine is asked"


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(404, content=b"{}"),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(302, headers={"Location": "http://127.0.0.1:9/"}),
        httpx.Response(200, content=b""),
    ],
    ids=["404", "a web page", "redirect", "empty"],
)
async def test_another_program_on_a_usual_port_is_no_upstream(
    response: httpx.Response,
) -> None:
    transports = FakeTransports({PRESETS["ollama"].base_url: response})
    choice = await select_upstreams(Settings(), "", transports, keys())
    assert list(choice.upstreams) == ["demo"]


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


async def test_without_anything_the_demo_answers_and_the_reason_says_so() -> None:
    choice = await select_upstreams(Settings(), "", answering(), keys())
    assert {n: u.type for n, u in choice.upstreams.items()} == {"demo": "demo"}
    assert "no local server answers" in choice.reason
    assert "no key was found" in choice.reason
    assert "--upstream" in choice.reason


async def test_what_was_found_once_stays_whatever_answers_later() -> None:
    found = await select_upstreams(Settings(), "", answering("ollama"), keys())
    transports, ladder = answering("lmstudio"), keys(OPENAI_API_KEY="sk-x")
    later = await select_upstreams(Settings(), "", transports, ladder, found)
    assert later.upstreams == found.upstreams
    assert transports.requests == []


async def test_the_demo_gives_way_to_the_first_upstream_that_is_found() -> None:
    demo = await select_upstreams(Settings(), "", answering(), keys())
    later = await select_upstreams(Settings(), "", answering("ollama"), keys(), demo)
    assert list(later.upstreams) == ["ollama"]


async def test_a_keyring_that_fails_does_not_stop_the_start() -> None:
    ladder = KeyLadder(environ={}, keyring=store_of(FakeRing(error=RuntimeError("x"))))
    choice = await select_upstreams(Settings(), "", answering(), ladder)
    assert list(choice.upstreams) == ["demo"]


# --- keys ---


def test_for_whom_a_key_is_looked_for() -> None:
    section = {"api_key_env": "TEAM", "api_key_cmd": ["pass", "x"]}
    settings = Settings(upstreams={"openai": section})
    wanted = key_wanted("openai", settings.upstreams["openai"])
    assert wanted.entry == "openai@https://api.openai.com"
    assert wanted.preset_env == "OPENAI_API_KEY"
    assert (wanted.named_env, wanted.command) == ("TEAM", ("pass", "x"))


def test_a_vault_that_is_made_later_counts_too(paths: Paths) -> None:
    environ = {"BYOK_VAULT_PASSPHRASE": "open sesame"}
    ladder = make_ladder(paths, environ)
    wanted = KeyWanted("box", "https://h/v1")
    with pytest.raises(KeyMissing):
        ladder.find(wanted)
    Vault(paths.vault, environ).set(wanted.entry, "sk-of-the-vault")
    found = ladder.find(wanted)
    assert (found.value, found.source) == ("sk-of-the-vault", "vault")


def upstream_key(environ: dict[str, str], redactor: Redactor, name: str) -> UpstreamKey:
    section = Settings(upstreams={"box": BOX, "openai": {}}).upstreams[name]
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    return UpstreamKey(ladder, key_wanted(name, section), redactor)


async def test_a_key_is_looked_up_once_and_again_after_it_was_refused() -> None:
    environ = {"OPENAI_API_KEY": "first-key"}
    key = upstream_key(environ, Redactor(), "openai")
    assert await key.get() == "first-key"
    environ["OPENAI_API_KEY"] = "second-key"
    assert await key.get() == "first-key"
    key.forget()
    assert await key.get() == "second-key"


async def test_a_key_in_use_is_known_to_the_redactor() -> None:
    redactor = Redactor()
    await upstream_key({"OPENAI_API_KEY": "first-key"}, redactor, "openai").get()
    assert redactor("my first-key here") == "my [redacted] here"


async def test_only_an_upstream_that_needs_no_key_works_without() -> None:
    assert await upstream_key({}, Redactor(), "box").get() == ""
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY"):
        await upstream_key({}, Redactor(), "openai").get()


def test_the_token_of_the_official_service_belongs_to_its_address() -> None:
    official = {"base_url": "https://h.example:8443/base/"}
    wanted = official_wanted(Settings(routing={"official": official}))
    assert wanted.entry == "official@https://h.example:8443"
    assert wanted.own_env == "BYOK_KEY_OFFICIAL"
