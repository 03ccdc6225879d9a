"""Where keys are looked for: per upstream, bound to its address, named in the list."""

import pytest

from byok.core.errors import ConfigError, KeyMissing
from byok.core.platform.paths import Paths, find_paths
from byok.core.redact import Redactor
from byok.settings import Settings
from byok.settings.keys import KeyLadder, KeyWanted
from byok.settings.keys.lookup import UpstreamKey
from byok.settings.keys.vault import Vault
from byok.wiring.key_sources import (
    find_key,
    key_wanted,
    keys_wanted,
    list_keys,
    make_ladder,
    official_wanted,
)
from tests.fakes.ring import FakeRing, store_of

BOX = {"base_url": "https://box.example/v1"}


@pytest.fixture
def paths() -> Paths:
    return find_paths()


def test_for_whom_a_key_is_looked_for() -> None:
    section = {"api_key_env": "TEAM", "api_key_cmd": ["pass", "x"]}
    settings = Settings(upstreams={"openai": section})
    wanted = key_wanted("openai", settings.upstreams["openai"])
    assert wanted.entry == "openai@https://api.openai.com"
    assert wanted.preset_env == "OPENAI_API_KEY"
    assert (wanted.named_env, wanted.command) == ("TEAM", ("pass", "x"))


@pytest.mark.slow
def test_key_sources_include_a_vault_that_is_made_later(paths: Paths) -> None:
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


def test_key_source_of_the_official_token_belongs_to_its_url() -> None:
    official = {"base_url": "https://h.example:8443/base/"}
    wanted = official_wanted(Settings(routing={"official": official}))
    assert wanted.entry == "official@https://h.example:8443"
    assert wanted.own_env == "BYOK_KEY_OFFICIAL"


def listed(
    environ: dict[str, str], settings: Settings, ring: FakeRing | None = None
) -> list[tuple[str, str]]:
    ladder = KeyLadder(environ=environ, keyring=store_of(ring or FakeRing()))
    told = list_keys(settings, settings.upstreams, ladder)
    return [(row["upstream"], row["source"]) for row in told["keys"]]


def test_the_list_of_keys_has_each_upstream_and_presets_that_have_a_key() -> None:
    settings = Settings(upstreams={"box": BOX, "demo": {}})
    assert listed({"GROQ_API_KEY": "sk-x", "BYOK_KEY_BOX": "sk-y"}, settings) == [
        ("box", "BYOK_KEY_BOX"),
        ("groq", "GROQ_API_KEY"),
    ]
    assert listed({}, settings) == [("box", "none")]


def test_the_list_of_keys_has_the_official_service_where_it_has_an_address() -> None:
    settings = Settings(routing={"official": {"base_url": "https://h.example"}})
    assert listed({}, settings) == [("official", "none")]


def test_the_list_of_keys_says_what_is_wrong_with_one_and_never_shows_it() -> None:
    settings = Settings(upstreams={"box": BOX})
    ladder = KeyLadder(
        environ={"BYOK_KEY_BOX": "two words"}, keyring=store_of(FakeRing())
    )
    [row] = list_keys(settings, settings.upstreams, ladder)["keys"]
    assert (row["upstream"], row["source"], row["fingerprint"]) == ("box", "none", "")
    assert "BYOK_KEY_BOX" in row["error"]
    assert "two words" not in row["error"]


def test_key_sources_report_an_unreadable_store_once() -> None:
    settings = Settings(upstreams={"box": BOX, "other": BOX})
    ring = store_of(FakeRing(error=RuntimeError("x")))
    told = list_keys(settings, settings.upstreams, KeyLadder(environ={}, keyring=ring))
    assert len(told["unread"]) == 1


def test_the_list_of_keys_has_those_of_the_team_where_it_has_a_server() -> None:
    team = {"url": "https://qdrant.example:6333", "team": "a"}
    settings = Settings(embeddings={"team": team})
    assert listed({"BYOK_KEY_TEAM_INDEX__SALT": "x" * 20}, settings) == [
        ("team-index", "none"),
        ("team-index/salt", "BYOK_KEY_TEAM_INDEX__SALT"),
    ]


TWO = {**BOX, "key_names": ["work", "env:TEAM_KEY"]}


def test_key_sources_of_an_upstream_with_several_keys() -> None:
    settings = Settings(upstreams={"box": TWO, "one": BOX})
    work, team = keys_wanted("box", settings.upstreams["box"])
    assert (work.title, work.named_env) == ("box/work", "")
    assert (team.title, team.named_env) == ("box/TEAM_KEY", "TEAM_KEY")
    assert [one.title for one in keys_wanted("one", settings.upstreams["one"])] == [
        "one"
    ]
    assert listed({"TEAM_KEY": "sk-x"}, settings) == [
        ("box/work", "none"),
        ("box/TEAM_KEY", "TEAM_KEY"),
        ("one", "none"),
    ]


def test_key_sources_find_the_key_that_is_named() -> None:
    settings = Settings(upstreams={"box": TWO, "one": BOX})
    box, one = settings.upstreams["box"], settings.upstreams["one"]
    assert find_key("box", "work", box).title == "box/work"
    assert find_key("one", "", one).title == "one"
    for label in ("", "home"):
        with pytest.raises(ConfigError) as caught:
            find_key("box", label, box)
        assert "box/work, box/TEAM_KEY" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        find_key("one", "work", one)
    assert "key_names" in caught.value.hint
