"""The table of well-known upstreams."""

import re
from urllib.parse import urlsplit

import pytest

from byok.dialects.base import DIALECTS, ErrorResponse
from byok.dialects.presets import (
    DEMO,
    OLLAMA,
    OPENAI_COMPATIBLE,
    PRESETS,
    find_preset,
    vendor_of,
)
from tests.fakes.trial_dialect.dialect import TrialDialect

ADDRESSED = {name: preset for name, preset in PRESETS.items() if preset.base_url}


@pytest.mark.parametrize("name", ADDRESSED)
def test_preset_base_url_is_safe_and_complete(name: str) -> None:
    preset = PRESETS[name]
    url = urlsplit(preset.base_url)
    assert (url.scheme, url.hostname) == ("http", "127.0.0.1") or url.scheme == "https"
    assert preset.local == (url.scheme == "http")
    assert url.path or preset.dialect == OLLAMA
    assert not preset.base_url.endswith("/")
    assert not url.query + url.fragment + (url.username or "")


@pytest.mark.parametrize("name", PRESETS)
def test_preset_can_be_named_in_model_ids_and_names_its_key(name: str) -> None:
    preset = PRESETS[name]
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,31}", name)
    assert name not in (OPENAI_COMPATIBLE, DEMO)
    assert bool(preset.key_env) != preset.local
    assert re.fullmatch(r"([A-Z]+_)+(KEY|TOKEN(_[A-Z]+)?)|", preset.key_env)


def test_presets_share_no_base_url_and_no_variable() -> None:
    urls = [preset.base_url for preset in PRESETS.values()]
    keys = [p.key_env for p in PRESETS.values() if p.key_env and not p.only_by_name]
    assert len(set(urls)) == len(urls)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_addresses_of_one_origin_for_known_dialects(name: str) -> None:
    preset = PRESETS[name]
    assert preset.addresses.keys() <= DIALECTS.keys()
    assert preset.addresses[preset.dialect] == preset.base_url
    assert all(map(preset.is_at, filter(None, preset.addresses.values())))


@pytest.mark.parametrize(
    ("kind", "base_url", "vendor"),
    [
        (OPENAI_COMPATIBLE, "https://api.deepseek.com/anything", "deepseek"),
        (OPENAI_COMPATIBLE, "https://me.openai.azure.com/openai/v1", "azure"),
        (OPENAI_COMPATIBLE, "http://127.0.0.1:11434/v1", OLLAMA),
        (OPENAI_COMPATIBLE, "http://localhost:11434/v1", OLLAMA),
        (OPENAI_COMPATIBLE, "https://h:11434/v1", OPENAI_COMPATIBLE),
        (OPENAI_COMPATIBLE, "http://127.0.0.1:8080/v1", OPENAI_COMPATIBLE),
        ("mistral", "https://h/v1", "mistral"),
    ],
)
def test_a_vendor_is_known_by_its_type_or_its_address(
    kind: str, base_url: str, vendor: str
) -> None:
    assert vendor_of(kind, base_url) == vendor


@pytest.mark.parametrize(
    ("base_url", "name", "vendor"),
    [
        ("https://api.z.ai/api/coding/paas/v4", "zai_coding", "zai"),
        ("https://api.z.ai/api/anthropic", "zai", "zai"),
        ("https://open.bigmodel.cn/api/paas/v4", "bigmodel", "zai"),
        ("https://bedrock-mantle.eu-west-1.api.aws/v1", "bedrock", "bedrock"),
    ],
)
def test_presets_on_one_host_are_told_apart_by_their_paths(
    base_url: str, name: str, vendor: str
) -> None:
    assert find_preset(OPENAI_COMPATIBLE, base_url) == name
    assert vendor_of(OPENAI_COMPATIBLE, base_url) == vendor


def test_another_address_of_a_vendor_is_used_only_by_name() -> None:
    others = {name: preset for name, preset in PRESETS.items() if preset.vendor}
    assert {preset.vendor for preset in others.values()} <= PRESETS.keys()
    shared = [p for p in others.values() if p.key_env == PRESETS[p.vendor].key_env]
    assert shared
    assert all(preset.only_by_name for preset in shared)


# The interface of dialects: what one gets for nothing, and what all must keep to


@pytest.mark.parametrize("name", [*DIALECTS, "trial"])
def test_a_dialect_is_equal_to_another_of_the_same_vendor(name: str) -> None:
    make = {**DIALECTS, "trial": TrialDialect.of}[name]
    assert make("mistral") == make("mistral")
    assert hash(make("mistral")) == hash(make("mistral"))
    assert make("mistral").name == name


@pytest.mark.parametrize("name", [*DIALECTS, "trial"])
@pytest.mark.parametrize("body", [None, 7, "x", [], {}, [1], {"data": 5}])
def test_a_dialect_reads_any_json_as_a_list_of_models(name: str, body: object) -> None:
    dialect = {**DIALECTS, "trial": TrialDialect.of}[name]("mistral")
    assert dialect.read_models(body).next_path == ""
    assert dialect.read_probe(body, "m").id == "m"


@pytest.mark.parametrize("name", [*DIALECTS, "trial"])
def test_a_refusal_takes_its_wait_from_the_headers(name: str) -> None:
    body = {"error": {"message": "Too many requests"}}
    response = ErrorResponse(429, body, {"retry-after": "7"})
    dialect = {**DIALECTS, "trial": TrialDialect.of}[name]("")
    assert dialect.refusal(response).retry_after == 7
