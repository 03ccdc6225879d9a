"""The table of known models: rows of a vendor, and what holds on other hosts."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given

from byok.dialects.known_models import ModelTable, read_table
from byok.dialects.model_facts import ModelFacts, Price
from tests.fakes.values import VALUES

TABLE = read_table(
    {
        "source": "a list 1.0",
        "date": "2026-10-01",
        "vendors": {
            "openai": {
                "gpt-x": [272_000, 128_000, "ITRsE", "high low", 1.25, 10, 0.125],
                "gpt-x-2026-01-02": [1000],
            },
            "groq": {"openai/gpt-x": [8000, 0, "T"]},
            "gemini": {"gem-1": [9000]},
            "zai": {"glm-x": [9000, 800, "", "", 1, 2]},
        },
    }
)


def test_a_row_of_the_vendor_itself_counts_whole() -> None:
    assert TABLE.facts("openai", "gpt-x") == ModelFacts(
        "gpt-x",
        window=272_000,
        max_output=128_000,
        images=True,
        tools=True,
        thinking=True,
        sampling=False,
        efforts=("low", "high"),
        dialect="openai_responses",
        price=Price(1.25, 10.0, 0.125),
    )


@pytest.mark.parametrize(
    ("vendor", "model", "window"),
    [
        ("openai", "gpt-x-2026-01-02", 1000),
        ("openai", "gpt-x-2026-05-05", 272_000),
        ("openai", "gpt-x-latest", 272_000),
        ("openai", "GPT-X", 272_000),
        ("gemini", "models/gem-1", 9000),
        ("groq", "openai/gpt-x:free", 8000),
        ("openai", "gpt-x-mini", 0),
        ("", "gpt-x", 0),
        ("groq", "gpt-x", 0),
    ],
)
def test_a_window_is_that_of_the_vendors_own_host(
    vendor: str, model: str, window: int
) -> None:
    found = TABLE.facts(vendor, model)
    assert (found.id, found.window) == (model, window)


@pytest.mark.parametrize("model", ["openai/gpt-x", "azure/gpt-x-2026-05-05", "GPT-X"])
def test_what_a_model_can_do_is_the_same_on_every_host(model: str) -> None:
    assert TABLE.facts("somebody", model) == ModelFacts(
        model, images=True, tools=True, thinking=True, sampling=False
    )


def test_another_address_of_a_vendor_has_its_windows_and_prices_of_its_own() -> None:
    assert TABLE.facts("zai_coding", "glm-x") == ModelFacts(
        "glm-x", window=9000, max_output=800
    )


def test_models_of_a_vendor_are_those_of_its_other_address_too() -> None:
    assert TABLE.models_of("bigmodel") == TABLE.models_of("zai") == ["glm-x"]
    assert TABLE.models_of("somebody") == []


def test_prices_are_stale_after_ninety_days() -> None:
    assert not TABLE.is_stale(date(2026, 12, 30))
    assert TABLE.is_stale(date(2026, 12, 31))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"source": "s", "date": "2026-10-01"},
        {"source": "s", "date": "2026-10-01", "vendors": []},
        {"source": "s", "date": "2026-10-01", "vendors": {"openai": []}},
        {"source": "s", "date": "yesterday", "vendors": {}},
    ],
    ids=str,
)
def test_what_is_no_table_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        read_table(value)


@given(VALUES)
def test_a_row_may_be_any_json(row: Any) -> None:
    table = ModelTable({"openai": {"m": row}})
    assert table.facts("openai", "m").id == "m"
