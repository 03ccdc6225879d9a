"""What is wrong with settings that can be read."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError
from byok.settings import Settings, check_settings, chosen_models

BOX: dict[str, Any] = {"upstreams": {"box": {"base_url": "https://h/v1"}}}
FINE: list[dict[str, Any]] = [
    {},
    BOX,
    {"routing": {"default": "byok:ollama:m"}},
    {"embeddings": {"upstream": "ollama", "model": "m"}},
    {**BOX, "embeddings": {"upstream": "box", "model": "m"}},
    {**BOX, "routing": {"default": "byok:box:m", "models": {"small": "any"}}},
    {
        **BOX,
        "routing": {
            "aliases": {"fast": "byok:box:m"},
            "default": "fast",
            "fallback": {"chat": ["fast", "byok:box:n"]},
        },
    },
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({**BOX, "routing": {"default": "byok:ollama:m"}}, "default model 'byok:ollama:m'"),
    ({**BOX, "routing": {"models": {"title": "byok:a:b"}}}, "title model 'byok:a:b'"),
    ({**BOX, "routing": {"aliases": {"f": "byok:a:b"}}}, "f model 'byok:a:b'"),
    (
        {**BOX, "routing": {"fallback": {"chat": ["byok:a:b"]}}},
        "chat fallback model 'byok:a:b' names",
    ),
    (
        {**BOX, "routing": {"fallback": {"edit": ["fast"]}}},
        "edit fallback model 'fast' is no alias",
    ),
    ({"routing": {"default": "byok:nobody:m"}}, "default model 'byok:nobody:m'"),
    ({**BOX, "embeddings": {"upstream": "bax", "model": "m"}}, "upstream 'bax'"),
    ({"network": {"ca_file": "/nowhere/ca.pem"}}, "network.ca_file"),
    ({"upstreams": {"openai": {"ca_file": "/nowhere"}}}, "upstreams.openai.ca_file"),
]


@pytest.mark.parametrize("given", FINE, ids=str)
def test_config_check_accepts_settings_that_can_be_served(
    given: dict[str, Any],
) -> None:
    check_settings(Settings(**given))


@pytest.mark.parametrize(("given", "told"), WRONG, ids=[told for _, told in WRONG])
def test_config_check_finds_what_serve_would_refuse(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        check_settings(Settings(**given))


def test_config_check_includes_the_options_of_serve(tmp_path: Path) -> None:
    check_settings(Settings(**BOX), "demo", "byok:demo:echo")
    check_settings(Settings(**BOX), "ollama", "m")
    with pytest.raises(ConfigError, match="'byok:demo:echo'"):
        check_settings(Settings(**BOX), "ollama", "byok:demo:echo")
    with pytest.raises(ConfigError, match="Unknown upstream 'olama'"):
        check_settings(Settings(), "olama")


def test_config_check_error_names_the_missing_section_and_the_existing_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        check_settings(Settings(**BOX, routing={"default": "byok:ollama:m"}))
    assert "[upstreams.ollama]" in caught.value.hint
    assert caught.value.hint.endswith("these: box.")


def test_every_model_that_the_settings_choose_is_given_with_its_use() -> None:
    chosen = dict(chosen_models(Settings(**FINE[-1])))
    assert chosen["default"] == "fast"
    assert chosen["fast"] == "byok:box:m"
    assert chosen["chat fallback"] == "byok:box:n"
