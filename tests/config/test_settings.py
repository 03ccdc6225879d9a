"""The settings as types: defaults, and what sections refuse together."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.config import Settings
from byok.toolcalls.mode import RepairMode

CANARY = "canary7f3a"
HOST = "https://api.example.com/v1"


def test_the_defaults_need_no_file() -> None:
    settings = Settings()
    assert settings.server.port == 8317
    assert settings.upstreams == {}
    assert settings.tools.repair is RepairMode.LOSSLESS
    limits = settings.limits
    assert (limits.connections, limits.streams) == (512, 256)
    assert (limits.waiting, limits.wait_seconds) == (64, 10)


def test_every_key_is_described_in_a_sentence() -> None:
    sections: list[Any] = [f.annotation for f in Settings.model_fields.values()]
    sections = [s for s in sections if hasattr(s, "model_fields")]
    assert len(sections) >= 7
    for section in sections:
        for name, field in section.model_fields.items():
            text = field.description or ""
            assert text.endswith("."), f"{section.__name__}.{name} has no description"


@pytest.mark.case("B99")
def test_no_setting_can_make_byok_listen_elsewhere() -> None:
    assert set(type(Settings().server).model_fields) == {"port"}


@pytest.mark.parametrize("name", ["ollama", "openai", "demo"])
def test_a_section_named_like_a_preset_gets_its_type(name: str) -> None:
    settings = Settings(upstreams={name: {"model": "m"}})
    assert settings.upstreams[name].type == name


def test_a_section_may_name_another_type_than_its_own_name() -> None:
    section = {"type": "openai_compatible", "base_url": HOST}
    assert Settings(upstreams={"ollama": section}).upstreams["ollama"].base_url == HOST


@pytest.mark.parametrize("kind", ["openai_compatible", "azure"])
def test_an_upstream_without_a_usual_address_needs_a_base_url(kind: str) -> None:
    with pytest.raises(ValidationError, match=r"upstreams\.box\.base_url is missing"):
        Settings(upstreams={"box": {"type": kind}})


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com",
        "HTTP://api.example.com",
        "http://127.1",
        "http://0x7f.1",
        "http://2130706433",
        "http://0.0.0.0:11434",
        "http://localhost.example.com",
    ],
)
def test_plain_http_beyond_this_machine_needs_permission(url: str) -> None:
    with pytest.raises(ValidationError, match="plain http to another machine"):
        Settings(upstreams={"box": {"base_url": url}})
    allowed = {"base_url": url, "allow_insecure_http": True}
    assert Settings(upstreams={"box": allowed}).upstreams["box"].base_url == f"{url}/v1"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]
)
def test_plain_http_to_this_machine_is_fine(url: str) -> None:
    assert Settings(upstreams={"box": {"base_url": url}}).upstreams["box"].base_url


def test_permission_for_plain_http_does_not_open_link_local_addresses() -> None:
    section = {"base_url": "http://169.254.169.254", "allow_insecure_http": True}
    with pytest.raises(ValidationError, match="link-local"):
        Settings(upstreams={"box": section})


@pytest.mark.parametrize("name", ["", "Box", "my box", "a.b", "-a", "x" * 33])
def test_an_odd_upstream_name_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="32 characters at most"):
        Settings(upstreams={name: {"base_url": HOST}})


def test_prompts_knows_the_endpoints_that_ask_a_model() -> None:
    settings = Settings(prompts={"chat-stream": "Be brief.", "chat": "Be kind."})
    assert settings.prompts["chat"] == "Be kind."
    with pytest.raises(ValidationError, match="chat-stream, chat") as caught:
        Settings(prompts={"chat-streem": CANARY})
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"chat": {"temperature": 2.1}},
        {"chat": {"temperature": float("nan")}},
        {"chat": {"top_p": 0}},
        {"chat": {"max_tokens": 0}},
        {"limits": {"streams": 0}},
        {"limits": {"connections": 7}},
        {"limits": {"waiting": -1}},
        {"limits": {"wait_seconds": 61}},
        {"log": {"level": "loud"}},
        {"tools": {"repair": "more"}},
        {"upstreams": {"demo": {"timeout": -1}}},
    ],
    ids=str,
)
def test_a_value_out_of_range_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**given)


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().server.port = 9000  # type: ignore[misc]
