"""Where keys are looked for, what their names mean, and what stays at its address."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError
from byok.settings import Settings, make_settings
from byok.settings.keys import KeyLadder
from byok.wiring.key_sources import (
    find_key,
    find_moved_secrets,
    key_lookup,
    key_lookups,
    key_named,
    list_keys,
)
from tests.fakes.ring import FakeRing, store_of

BOX = {"base_url": "https://box.example/v1"}


def test_for_whom_a_key_is_looked_for() -> None:
    section = {"api_key_env": "TEAM", "api_key_cmd": ["pass", "x"]}
    settings = Settings(upstreams={"openai": section})
    wanted = key_lookup("openai", settings.upstreams["openai"])
    assert wanted.entry == "openai@https://api.openai.com"
    assert wanted.preset_env == "OPENAI_API_KEY"
    assert (wanted.named_env, wanted.command) == ("TEAM", ("pass", "x"))
    elsewhere = Settings(upstreams={"openai": {"base_url": "https://other.example"}})
    wanted = key_lookup("openai", elsewhere.upstreams["openai"])
    assert wanted.preset_env == ""  # the vendor's variable is for the vendor alone


def listed(environ: dict[str, str], settings: Settings) -> list[tuple[str, str]]:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    told = list_keys(settings, settings.upstreams, ladder)
    return [(row["upstream"], row["source"]) for row in told["keys"]]


def test_the_list_of_keys_has_each_upstream_and_presets_that_have_a_key() -> None:
    settings = Settings(upstreams={"box": BOX, "demo": {}})
    assert listed({"GROQ_API_KEY": "sk-x", "BYOK_KEY_BOX": "sk-y"}, settings) == [
        ("box", "BYOK_KEY_BOX"),
        ("groq", "GROQ_API_KEY"),
    ]
    assert listed({}, settings) == [("box", "none")]


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


def test_the_list_of_keys_has_services_that_have_an_address() -> None:
    team = {"url": "https://qdrant.example:6333", "team": "a"}
    official = {"official": {"base_url": "https://h.example"}}
    settings = Settings(embeddings={"team": team}, routing=official)
    assert listed({"BYOK_KEY_TEAM_INDEX__SALT": "x" * 20}, settings) == [
        ("official", "none"),
        ("team-index", "none"),
        ("team-index/salt", "BYOK_KEY_TEAM_INDEX__SALT"),
    ]


TWO = {**BOX, "key_names": ["work", "env:TEAM_KEY"]}


def test_key_sources_of_an_upstream_with_several_keys() -> None:
    settings = Settings(upstreams={"box": TWO, "one": BOX})
    work, team = key_lookups("box", settings.upstreams["box"])
    assert (work.title, work.named_env) == ("box/work", "")
    assert (team.title, team.named_env) == ("box/TEAM_KEY", "TEAM_KEY")
    assert [one.title for one in key_lookups("one", settings.upstreams["one"])] == [
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


SETTINGS = Settings.model_validate(
    {
        "upstreams": {
            "mine": {"base_url": "https://a.example/v1"},
            "two": {"base_url": "https://b.example/v1", "key_names": ["work", "home"]},
            "demo": {},
        },
        "routing": {"official": {"base_url": "https://o.example"}},
        "embeddings": {
            "upstream": "mine",
            "model": "m",
            "team": {"url": "https://q.example", "team": "t"},
        },
        "search": {"remote": {"url": "https://s.example/zoekt"}},
        "web": {"search": "brave"},
    }
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
        ("search-server", "search-server@https://s.example"),
        ("web-search", "web-search@https://api.search.brave.com"),
    ],
)
def test_a_key_is_stored_for_one_origin(name: str, entry: str) -> None:
    assert key_named(name, SETTINGS).entry == entry


@pytest.mark.parametrize(
    "name",
    ["nobody", "two", "two/other", "mine/x", "demo", "official"],
)
def test_a_name_without_a_key_is_refused(name: str) -> None:
    settings = SETTINGS if name != "official" else Settings()
    with pytest.raises(ConfigError):
        key_named(name, settings)


OLD, NEW = "https://old.example/v1", "https://new.example/v1"
ENVIRON = {"BYOK_KEY_BOUND": "sk-canary0123456789", "MINE": "sk-canary0123456789"}


def read(given: dict[str, Any]) -> Settings:
    return make_settings(given, Path("config.toml"))


def settings(name: str, base_url: str, **fields: Any) -> Settings:
    section = {"base_url": base_url, "model": "m", **fields}
    return read({"upstreams": {name: section}})


def told(before: Settings, after: Settings, **environ: str) -> list[str]:
    ladder = KeyLadder(environ={**ENVIRON, **environ})
    faults = find_moved_secrets((Settings(), before), after, ladder)
    assert all("must be changed in the file" in fault.message for fault in faults)
    return [".".join(fault.path) for fault in faults]


@pytest.mark.parametrize(
    "fields",
    [
        {"headers": {"X-Team": "t"}},
        {"query": {"k": "v"}},
        {"extra_body": {"user": "me"}},
        {"api_key_cmd": ["pass", "x"]},
        {"api_key_env": "MINE"},
        {"key_names": ["env:MINE", "work"]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_the_file_gives_stays_at_its_address(fields: dict[str, Any]) -> None:
    before = settings("own", OLD, **fields)
    assert told(before, settings("own", NEW, **fields)) == ["upstreams.own.base_url"]
    assert told(before, settings("own", OLD + "/more", **fields)) == []


@pytest.mark.parametrize("field", ["headers", "extra_body"])
def test_what_goes_to_all_upstreams_goes_to_no_new_address(field: str) -> None:
    def at(url: str) -> Settings:
        own = {"base_url": url, "model": "m"}
        return read({"chat": {field: {"X-Team": "t"}}, "upstreams": {"own": own}})

    assert told(at(OLD), at(NEW)) == ["upstreams.own.base_url"]
    assert told(at(OLD), at(OLD + "/more")) == []


def test_a_variable_of_byok_stays_at_its_address() -> None:
    after = settings("bound", NEW)
    assert told(settings("bound", OLD), after) == ["upstreams.bound.base_url"]
    assert told(Settings(), after) == ["upstreams.bound.base_url"]
    assert told(settings("free", OLD), settings("free", NEW)) == []


def test_a_preset_may_be_added_at_its_own_address() -> None:
    variable = {"BYOK_KEY_OPENAI": "sk-canary0123456789"}
    own = settings("openai", "", type="openai")
    assert told(Settings(), own, **variable) == []
    other = settings("openai", NEW, type="openai")
    assert told(Settings(), other, **variable) == ["upstreams.openai.base_url"]


def test_a_credential_of_systemd_stays_at_its_address(tmp_path: Path) -> None:
    (tmp_path / "byok.own").write_text("sk-canary0123456789")
    found = told(
        settings("own", OLD), settings("own", NEW), CREDENTIALS_DIRECTORY=str(tmp_path)
    )
    assert found == ["upstreams.own.base_url"]


@pytest.mark.parametrize(
    ("own", "environ"),
    [
        ({"headers": {"X-Org": "o"}}, {}),
        ({}, {"BYOK_KEY_SEARCH_SERVER": "canary0123456789"}),
    ],
    ids=str,
)
def test_what_a_search_server_gets_stays_at_its_address(
    own: dict[str, Any], environ: dict[str, str]
) -> None:
    def remote(url: str) -> Settings:
        return read({"search": {"remote": {"url": url, **own}}})

    assert told(remote(OLD), remote(NEW), **environ) == ["search.remote.url"]
    assert told(remote(OLD), remote(f"{OLD}/more"), **environ) == []


def test_the_key_of_the_webs_search_stays_at_its_address() -> None:
    def web(search: str, url: str = "") -> Settings:
        return read({"web": {"search": search, "url": url}})

    own = {"BYOK_KEY_WEB_SEARCH": "canary0123456789"}
    assert told(web("brave"), web("brave", NEW), **own) == ["web.url"]
    assert told(web("brave"), web("exa"), **own) == ["web.url"]
    assert told(web("brave"), web("exa"), BRAVE_API_KEY="canary0123456789") == []
    assert told(web("off"), web("searxng", NEW), **own) == []


def test_the_official_token_stays_at_its_address() -> None:
    def official(url: str) -> Settings:
        return read({"routing": {"official": {"base_url": url}}})

    old, new = official("https://old.example"), official("https://new.example")
    assert told(old, new) == []
    variable = {"BYOK_KEY_OFFICIAL": "sk-canary0123456789"}
    assert told(old, new, **variable) == ["routing.official.base_url"]
    assert told(old, old, **variable) == []
