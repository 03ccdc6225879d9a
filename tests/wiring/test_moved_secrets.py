"""What is bound to no address does not go to a new one."""

from pathlib import Path
from typing import Any

import pytest

from byok.settings import Settings, make_settings
from byok.settings.keys import KeyLadder
from byok.wiring.key_sources import moved_secrets

OLD, NEW = "https://old.example/v1", "https://new.example/v1"
ENVIRON = {"BYOK_KEY_BOUND": "sk-canary0123456789", "MINE": "sk-canary0123456789"}


def read(given: dict[str, Any]) -> Settings:
    return make_settings(given, Path("config.toml"))


def settings(name: str, base_url: str, **fields: Any) -> Settings:
    section = {"base_url": base_url, "model": "m", **fields}
    return read({"upstreams": {name: section}})


def told(before: Settings, after: Settings, **environ: str) -> list[str]:
    ladder = KeyLadder(environ={**ENVIRON, **environ})
    faults = moved_secrets((Settings(), before), after, ladder)
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


def test_the_official_token_stays_at_its_address() -> None:
    def official(url: str) -> Settings:
        return read({"routing": {"official": {"base_url": url}}})

    old, new = official("https://old.example"), official("https://new.example")
    assert told(old, new) == []
    variable = {"BYOK_KEY_OFFICIAL": "sk-canary0123456789"}
    assert told(old, new, **variable) == ["routing.official.base_url"]
    assert told(old, old, **variable) == []
