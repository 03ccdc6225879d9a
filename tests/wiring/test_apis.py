"""Where the APIs of an upstream are, by its settings and its preset."""

from typing import Any

import pytest

from byok.dialects.base import DIALECTS
from byok.dialects.presets import PRESETS, Preset
from byok.settings import UpstreamSettings
from byok.wiring.apis import addresses_of, apis_of, base_url_of, local_upstreams
from tests.fakes.trial_dialect.dialect import TrialDialect


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets with two dialects, at two addresses and at one."""
    monkeypatch.setitem(DIALECTS, "trial", TrialDialect.of)
    apart = {"openai_chat": "https://h/v1", "trial": "https://h/trial"}
    monkeypatch.setitem(
        PRESETS,
        "beside",
        Preset({"trial": "http://127.0.0.1:7", "openai_chat": "http://127.0.0.1:7/v1"}),
    )
    monkeypatch.setitem(PRESETS, "apart", Preset(apart))
    both = {"trial": "https://h/v1", "openai_chat": "https://h/v1"}
    monkeypatch.setitem(PRESETS, "both", Preset(both))
    deep = {"openai_chat": "https://h/api/v1", "trial": "https://h/trial"}
    monkeypatch.setitem(PRESETS, "deep", Preset(deep))


@pytest.mark.parametrize(
    ("section", "addresses"),
    [
        (
            {"type": "apart"},
            {"openai_chat": "https://h/v1", "trial": "https://h/trial"},
        ),
        (
            {"type": "apart", "dialect": "trial"},
            {"trial": "https://h/trial", "openai_chat": "https://h/v1"},
        ),
        (
            {"type": "apart", "base_url": "https://own/x"},
            {"openai_chat": "https://own/x"},
        ),
        (
            {"type": "deep", "base_url": "https://api/v1"},
            {"openai_chat": "https://api/v1"},
        ),
        (
            {"type": "both", "base_url": "https://own/x"},
            {"trial": "https://own/x", "openai_chat": "https://own/x"},
        ),
        (
            {"type": "apart", "base_url": "https://own/x/trial"},
            {"openai_chat": "https://own/x/v1", "trial": "https://own/x/trial"},
        ),
        (
            {"type": "beside", "base_url": "http://box:7/v1"},
            {"trial": "http://box:7", "openai_chat": "http://box:7/v1"},
        ),
        (
            {"type": "beside", "base_url": "http://box:7"},
            {"trial": "http://box:7", "openai_chat": "http://box:7/v1"},
        ),
        (
            {"type": "beside", "base_url": "http://box/x", "dialect": "openai_chat"},
            {"openai_chat": "http://box/x/v1", "trial": "http://box/x"},
        ),
        (
            {"base_url": "https://own/x"},
            {"openai_chat": "https://own/x", "openai_responses": "https://own/x"},
        ),
        (
            {"base_url": "https://openrouter.ai/api/v1"},
            {"openai_chat": "https://openrouter.ai/api/v1"},
        ),
        ({"base_url": "https://own/x", "dialect": "trial"}, {"trial": "https://own/x"}),
    ],
)
@pytest.mark.usefixtures("two")
def test_the_first_address_is_of_the_dialect_in_use(
    section: dict[str, Any], addresses: dict[str, str]
) -> None:
    settings = UpstreamSettings(**section)
    found = addresses_of(settings)
    assert [*found.items()] == [*addresses.items()]
    assert base_url_of(settings) == next(iter(addresses.values()))
    assert [api.base_url for api in apis_of(settings)] == [*addresses.values()]


@pytest.mark.parametrize(
    ("given", "dialect", "base_url"),
    [
        ("https://api.example.com", "", "https://api.example.com/v1"),
        ("https://api.example.com/", "", "https://api.example.com/v1"),
        ("https://api.example.com/v1/", "", "https://api.example.com/v1"),
        ("https://api.example.com/base", "", "https://api.example.com/base"),
        ("http://127.0.0.1:11434", "", "http://127.0.0.1:11434/v1"),
        ("http://[::1]:8000", "", "http://[::1]:8000/v1"),
        ("http://127.0.0.1:11434", "trial", "http://127.0.0.1:11434"),
    ],
)
@pytest.mark.usefixtures("two")
def test_a_base_url_without_a_path_gets_the_usual_one_of_its_dialect(
    given: str, dialect: str, base_url: str
) -> None:
    settings = UpstreamSettings(base_url=given, dialect=dialect)
    assert base_url_of(settings) == base_url


def test_local_upstreams_are_those_on_this_machine() -> None:
    sections = {
        "near": UpstreamSettings(base_url="http://127.0.0.1:9/v1"),
        "ollama": UpstreamSettings(type="ollama"),
        "openai": UpstreamSettings(type="openai"),
        "lan": UpstreamSettings(base_url="https://box.lan/v1"),
        "demo": UpstreamSettings(type="demo"),
    }
    assert local_upstreams(sections) == {"near", "ollama", "demo"}
