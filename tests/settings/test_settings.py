"""The settings as types: defaults, and what sections refuse together."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.settings import Settings

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


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1]:1"])
def test_plain_http_to_this_machine_is_accepted(url: str) -> None:
    assert Settings(upstreams={"box": {"base_url": url}}).upstreams["box"].base_url


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
