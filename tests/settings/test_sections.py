"""What each section of the settings takes, and refuses."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from byok.core.errors import ConfigError
from byok.core.routing import EndpointGroup, Purpose, ServedBy
from byok.dialects.model_facts import FIELDS, ModelFacts, Price, Replay
from byok.settings import Settings, load_settings, sections, values
from byok.settings.sections import (
    EmbeddingSettings,
    FactSettings,
    FallbackSettings,
    OfficialSettings,
    TeamSettings,
)


def test_config_section_keys_have_descriptions() -> None:
    types = {t for t in vars(sections).values() if isinstance(t, type)}
    found = [t for t in types if issubclass(t, BaseModel)]
    assert len(found) >= 16
    for section in found:
        for name, field in section.model_fields.items():
            if field.annotation in found:
                continue  # a section of its own
            text = field.description or ""
            assert text.endswith("."), f"{section.__name__}.{name} has no description"


@pytest.mark.parametrize(
    "given",
    [
        {"upstream": "ollama"},
        {"upstream": "https://h/v1", "model": "m"},
        {"upstream": "Ollama", "model": "m"},
        {"upstream": "demo", "model": "m"},
        {"upstream": "ollama", "model": "m\n"},
        {"dimensions": -1},
        {"document_prefix": "x" * 1001},
    ],
)
def test_config_refuses_embeddings_that_cannot_work(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(embeddings=EmbeddingSettings.model_validate(given))


URL = "https://qdrant.example:6333"


def test_nothing_is_shared_until_a_server_is_named() -> None:
    assert not Settings().embeddings.team.on
    assert not TeamSettings(team="platform", write=True).on
    own = TeamSettings(url=f"{URL}/", team="platform")
    assert (own.on, own.url, own.write, own.search) == (True, URL, False, False)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": URL}, "no team"),
        ({"url": URL, "team": "Team"}, "a-z, 0-9"),
        ({"url": "qdrant.example", "team": "a"}, "must look like https"),
        ({"url": "http://qdrant.example", "team": "a"}, "plain http"),
        ({"url": URL, "team": "a", "proxy": "socks5://h"}, "proxy"),
        ({"url": "postgresql://h/d", "team": "a"}, "user@host"),
        ({"url": "postgresql://u:secret@h/d", "team": "a"}, "valid host"),
        ({"url": "postgresql://u@h/d/e", "team": "a"}, "user@host"),
        ({"url": "postgresql://u@h/d?sslmode=disable", "team": "a"}, "query"),
        ({"url": "postgresql://u@169.254.1.1/d", "team": "a"}, "link-local"),
        ({"url": "postgresql://u@h:x/d", "team": "a"}, "port"),
        ({"url": "postgresql://u@h", "team": "a", "proxy": "http://p"}, "no use"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        TeamSettings(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"url": "http://127.0.0.1:6333", "team": "a"},
        {"url": "http://h:6333", "team": "a", "allow_insecure_http": True},
        {"url": "postgresql://u@db.example:5433/byok", "team": "a"},
    ],
)
def test_plain_http_on_this_machine_and_where_it_is_allowed(
    given: dict[str, Any],
) -> None:
    assert TeamSettings(**given).on


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": "http://code.example"}, "plain http"),
        ({"url": "https://code.example?q=1"}, "query"),
        ({"headers": {"X\n": "a"}}, "header"),
        ({"token_scheme": "a b"}, "token_scheme"),
    ],
)
def test_a_search_server_that_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings(search={"remote": given})


@pytest.mark.parametrize(
    "given",
    [
        {"search": "google"},
        {"search": "searxng"},
        {"search": "searxng", "url": "http://search.example"},
        {"search": "searxng", "url": "http://8.8.8.8"},
        {"search": "brave", "url": "http://192.168.1.2"},
        {"search": "brave", "per_day": -1},
    ],
)
def test_web_tools_that_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"web": given})
    for near in (
        "http://localhost:8888",
        "http://192.168.1.2:8888",
        "https://s.example",
    ):
        assert Settings.model_validate({"web": {"search": "searxng", "url": near}})


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("search-server", {"search": {"remote": {"url": "https://c.example"}}}),
        ("web-search", {"web": {"search": "brave"}}),
        ("team-index", {"embeddings": {"team": {"url": URL, "team": "a"}}}),
        ("team-index__salt", {"embeddings": {"team": {"url": URL, "team": "a"}}}),
    ],
)
def test_no_upstream_has_the_key_of_a_service(
    name: str, service: dict[str, Any]
) -> None:
    upstreams = {name: {"base_url": "https://h/v1"}}
    assert Settings.model_validate({"upstreams": upstreams})
    with pytest.raises(ValidationError, match="would both be read from BYOK_KEY_"):
        Settings.model_validate({"upstreams": upstreams, **service})


def test_config_default_is_local_and_telemetry_is_off() -> None:
    for official in (OfficialSettings(), OfficialSettings(base_url=URL)):
        places = {group: official.where(group) for group in EndpointGroup}
        assert places.pop(EndpointGroup.TELEMETRY) is ServedBy.OFF
        assert set(places.values()) == {ServedBy.LOCAL}
        assert official.groups == ()
        assert not official.lacks_address


@pytest.mark.parametrize("group", EndpointGroup)
def test_config_section_exists_for_every_endpoint_group(group: EndpointGroup) -> None:
    official = OfficialSettings.model_validate({"base_url": URL, group: "official"})
    assert official.groups == (group,)
    assert official.where(group) is ServedBy.OFFICIAL


def test_config_without_an_official_url_sends_nothing_there() -> None:
    official = OfficialSettings(chat=ServedBy.OFFICIAL, edit=ServedBy.OFF)
    assert official.lacks_address
    assert official.groups == ()
    assert official.where(EndpointGroup.CHAT) is ServedBy.LOCAL
    assert official.where(EndpointGroup.EDIT) is ServedBy.OFF


A, B = "byok:a:m", "byok:b:m"


def test_config_fallback_of_small_jobs_is_common_to_them() -> None:
    fallback = FallbackSettings(chat=[A], title=[B], small=[A, B])
    assert fallback.for_purpose(Purpose.CHAT) == [A]
    assert fallback.for_purpose(Purpose.EDIT) == []
    assert fallback.for_purpose(Purpose.TITLE) == [B]
    assert fallback.for_purpose(Purpose.SUMMARY) == [A, B]


@pytest.mark.parametrize(
    "given",
    [
        {"fallback": {"chat": ["a model"]}},
        {"aliases": {"fast": "slow"}},
        {"aliases": {"byok:a:b": A}},
    ],
)
def test_config_fallback_and_alias_name_whole_models(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(routing=given)


PASSING = {"id", "loaded_window", "token_memory", "price"}


def test_facts_that_are_set_have_their_types() -> None:
    given = FactSettings(
        window=8000, images=False, efforts=("low",), replay="never", price_input=2
    )
    assert given.as_facts("m") == ModelFacts(
        "m",
        window=8000,
        images=False,
        efforts=("low",),
        replay=Replay.NEVER,
        price=Price(2.0),
    )


def test_every_fact_can_be_set() -> None:
    prices = {f"price_{name}" for name in Price.__struct_fields__}
    settable = set(FactSettings.model_fields)
    assert prices < settable
    assert settable - prices == set(FIELDS) - PASSING


@pytest.mark.parametrize("given", [{"efforts": ["odd"]}, {"dialect": "odd"}], ids=str)
def test_a_fact_that_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FactSettings.model_validate(given)


def test_facts_are_a_section_of_their_upstream(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[upstreams.openai.facts."gpt-5.6-terra"]\nwindow = 400000\n')
    settings: Settings = load_settings(file)
    assert settings.upstreams["openai"].facts["gpt-5.6-terra"].window == 400_000
    file.write_text("[upstreams.openai.facts.m]\nwindows = 400000\n")
    with pytest.raises(ConfigError, match="Did you mean window"):
        load_settings(file)


HOST = "https://api.example.com/v1"


@pytest.mark.case("B99")
def test_no_setting_can_make_byok_listen_elsewhere() -> None:
    assert set(type(Settings().server).model_fields) == {"port"}


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "http://127.1",
        "http://2130706433",
        "http://localhost.example.com",
    ],
)
def test_plain_http_beyond_this_machine_needs_permission(url: str) -> None:
    with pytest.raises(ValidationError, match="plain http to another machine"):
        Settings(upstreams={"box": {"base_url": url}})
    allowed = {"base_url": url, "allow_insecure_http": True}
    assert Settings(upstreams={"box": allowed}).upstreams["box"].base_url == url


@pytest.mark.parametrize("name", ["Box", "a.b", "x" * 33])
def test_upstream_name_with_odd_characters_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="32 characters at most"):
        Settings(upstreams={name: {"base_url": HOST}})


def test_upstream_cannot_be_named_like_the_official_service() -> None:
    with pytest.raises(ValidationError, match=r"address under \[routing.official\]"):
        Settings(upstreams={"official": {"base_url": HOST}})


@pytest.mark.parametrize(
    "keys", [["sk-canary-0123456789abcdef"], ["env:"], ["a" * 17], ["work", "work"]]
)
def test_key_names_hold_no_keys(keys: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(upstreams={"openai": {"key_names": keys}})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "upstreams",
    [
        {"a": {"key_names": ["b"]}, "a__b": {}},
        {"a": {"key_names": ["b-c", "b_c"]}},
        {"a-b": {}, "a_b": {}},
    ],
)
def test_no_two_keys_are_read_from_one_variable(upstreams: dict[str, Any]) -> None:
    given = {n: {"base_url": "https://h/v1", **u} for n, u in upstreams.items()}
    with pytest.raises(ValidationError, match="would both be read from BYOK_KEY_A"):
        Settings(upstreams=given)


@pytest.mark.parametrize("other", [{"api_key_env": "A"}, {"api_key_cmd": ["pass"]}])
def test_key_names_are_the_only_source_of_keys(other: dict[str, Any]) -> None:
    keys = ["work", "env:OPENAI_KEY_B"]
    openai = Settings(upstreams={"openai": {"key_names": keys}}).upstreams["openai"]
    assert openai.key_names == keys
    with pytest.raises(ValidationError, match="one more source of a key"):
        Settings(upstreams={"openai": {"key_names": keys, **other}})


CANARY = "canary7f3a"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("https://box.test/v1/chat/completions", "https://box.test/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://10.0.0.7:8443/openai", "https://10.0.0.7:8443/openai"),
    ],
)
def test_a_base_url_is_kept_but_for_its_end(given: str, kept: str) -> None:
    assert values.base_url(given) == kept


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("https://example.com/tenant/7//", "https://example.com/tenant/7"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        ("HTTP://localhost:9", "HTTP://localhost:9"),
    ],
)
def test_official_url_is_kept(given: str, kept: str) -> None:
    assert values.official_url(given) == kept


@pytest.mark.parametrize(
    "url",
    [
        f"http://{CANARY}.example",
        f"http://127.1/{CANARY}",
        f"https://user:{CANARY}@h.example",
    ],
)
def test_official_url_where_a_token_could_be_read_is_refused(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        values.official_url(url)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"file:///etc/{CANARY}", "https://host/v1"),
        (f"//{CANARY}/v1", "https://host/v1"),
        (f"https://me:{CANARY}@host", "password"),
        (f"https://{CANARY}@host", "password"),
        ("https://@host", "password"),
        ("https://host/v1?", "query"),
        (f"https://host/v1#{CANARY}", "fragment"),
        ("https://host/v1#", "fragment"),
        ("https://host:65536", "port"),
        (f"https://[{CANARY}]", "host"),
        ("http://[::1]n", "host"),
        ("https://[v1.x]", "host"),
        (f"https://host/{CANARY}\r\nX: y", "printable"),
        ("https://hóst", "printable"),
    ],
)
@pytest.mark.case("B58")
def test_base_url_that_is_no_http_url_is_refused_without_showing_it(
    url: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        values.base_url(url)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.case("B58")
def test_link_local_address_is_refused_in_every_spelling(
    scheme: str, host: str
) -> None:
    with pytest.raises(ValueError, match="link-local"):
        values.base_url(f"{scheme}://{host}/v1")


@pytest.mark.parametrize("number", [-1, 1023, 65536])
@pytest.mark.case("B99")
def test_port_outside_the_range_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="from 1024 to 65535") as caught:
        values.port(number)
    assert f"{number}," not in str(caught.value)


@pytest.mark.parametrize("given", [{"": "a"}, {"a b": ""}, {"a": "x\ny"}])
def test_query_with_odd_characters_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        values.query(given)
