"""The table of well-known upstreams."""

import re
from urllib.parse import urlsplit

import pytest

from byok.dialects.presets import DEMO, OPENAI_COMPATIBLE, PRESETS

ADDRESSED = {name: preset for name, preset in PRESETS.items() if preset.base_url}


@pytest.mark.parametrize("name", ADDRESSED)
def test_an_address_is_safe_and_complete(name: str) -> None:
    preset = PRESETS[name]
    url = urlsplit(preset.base_url)
    assert (url.scheme, url.hostname) == ("http", "127.0.0.1") or url.scheme == "https"
    assert preset.local == (url.scheme == "http")
    assert url.path
    assert not preset.base_url.endswith("/")
    assert not url.query + url.fragment + (url.username or "")


@pytest.mark.parametrize("name", PRESETS)
def test_a_name_can_stand_in_a_model_id(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name)
    assert name not in (OPENAI_COMPATIBLE, DEMO)


@pytest.mark.parametrize("name", PRESETS)
def test_a_hosted_one_says_where_its_key_is(name: str) -> None:
    preset = PRESETS[name]
    assert bool(preset.key_env) != preset.local
    assert re.fullmatch(r"([A-Z]+_)+KEY|", preset.key_env)


def test_only_azure_has_no_common_address() -> None:
    assert set(PRESETS) - set(ADDRESSED) == {"azure"}


def test_no_two_share_an_address_or_a_variable() -> None:
    urls = [preset.base_url for preset in PRESETS.values()]
    keys = [preset.key_env for preset in PRESETS.values() if preset.key_env]
    assert len(set(urls)) == len(urls)
    assert len(set(keys)) == len(keys)
