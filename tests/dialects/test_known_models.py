"""The table of known models: rows of a vendor, and what holds on other hosts."""

import json
from datetime import date
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.known_models import (
    LISTS,
    ModelTable,
    Rows,
    combine_lists,
    read_list,
    read_litellm,
    read_table,
    write_table,
)
from byok.dialects.model_facts import (
    FIELDS,
    FactSource,
    ModelFacts,
    Price,
    Replay,
    combine_facts,
    read_facts,
    read_window,
    write_facts,
)
from tests.fakes.model_lists import GEM, models_dev
from tests.fakes.values import OBJECTS, VALUES

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
        {"source": "s", "date": "2026-10-01"},
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


# Public lists of models: what is read of them, and what is not believed


CHAT = {"mode": "chat", "litellm_provider": "openai"}


def facts(vendor: str, model: str, listed: dict[str, Any]) -> ModelFacts:
    return of_rows(read_litellm(listed)).facts(vendor, model)


def test_a_row_has_what_the_list_knows() -> None:
    row = {
        **CHAT,
        "max_input_tokens": 272_000,
        "max_output_tokens": 128_000,
        "supports_vision": True,
        "supports_function_calling": True,
        "supports_sampling_params": False,
        "supports_none_reasoning_effort": True,
        "supports_xhigh_reasoning_effort": True,
        "supported_endpoints": ["/v1/responses"],
        "input_cost_per_token": 1.25e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 1.25e-07,
    }
    assert facts("openai", "m", {"m": row}) == ModelFacts(
        "m",
        window=272_000,
        max_output=128_000,
        images=True,
        tools=True,
        sampling=False,
        efforts=("none", "low", "medium", "high", "xhigh"),
        dialect="openai_responses",
        price=Price(1.25, 10.0, 0.125),
    )


def test_the_lower_limit_and_the_higher_price_of_two_rows_count() -> None:
    one = {**CHAT, "max_input_tokens": 9000, "supports_vision": True}
    other = {**CHAT, "max_input_tokens": 8000, "supports_vision": False}
    one |= {"input_cost_per_token": 1e-06, "reasoning_effort_levels": ["low", "high"]}
    other |= {"input_cost_per_token": 2e-06, "max_output_tokens": 700}
    listed = {"m": one, "openai/m": other}
    assert facts("openai", "m", listed) == ModelFacts(
        "m",
        window=8000,
        max_output=700,
        images=False,
        efforts=("low", "high"),
        price=Price(2.0),
    )


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("ft:m", {**CHAT, "max_input_tokens": 9000}),
        ("m", {**CHAT, "mode": "embedding", "max_input_tokens": 9000}),
        ("somebody/m", {**CHAT, "litellm_provider": "somebody"}),
        ("azure/eu/m", {**CHAT, "litellm_provider": "azure", "max_input_tokens": 9}),
        ("m\x1b[2J", {**CHAT, "max_input_tokens": 9000}),
        ("m", {**CHAT, "max_input_tokens": "many", "supports_vision": 3}),
        ("m", {**CHAT, "max_input_tokens": 1e300, "input_cost_per_token": -1}),
    ],
)
def test_what_nobody_asks_for_is_left_out(name: str, row: Any) -> None:
    assert not any(of_rows(read_litellm({name: row})).rows.values())


def of_rows(rows: Rows) -> ModelTable:
    table = write_table(rows, source="s", licence="l", day=date(2026, 11, 1))
    return read_table(orjson.loads(table))


def test_a_row_has_what_models_dev_knows() -> None:
    name, rows = read_list(models_dev(gem=GEM))
    assert name == "models.dev"
    assert of_rows(rows).facts("gemini", "gem") == ModelFacts(
        "gem",
        window=900_000,
        max_output=65_536,
        images=True,
        tools=True,
        thinking=True,
        sampling=False,
        efforts=("low",),
        price=Price(1.5, 9.0, 0.15),
    )


def test_a_model_that_does_not_answer_in_text_is_left_out() -> None:
    painter = {**GEM, "modalities": {"input": ["text"], "output": ["text", "image"]}}
    _, rows = read_list(models_dev(painter=painter))
    assert "painter" not in rows["gemini"]


def test_a_list_is_known_by_its_form() -> None:
    row = {**CHAT, "max_input_tokens": 9000}
    assert read_list({f"m{n}": row for n in range(200)})[0] == "LiteLLM"


@pytest.mark.parametrize("listed", [None, [], {}, {"google": {"models": {"gem": GEM}}}])
def test_a_list_of_no_or_few_models_is_refused(listed: Any) -> None:
    with pytest.raises(ValueError):
        read_list(listed)


def row_of(window: int, price: float) -> list[Any]:
    return [window, 0, "", "", price, price, None, None]


def combined(*rows: list[Any], before: list[Any] | None = None) -> tuple[Any, ...]:
    """Return what counts of one model, and the facts in doubt."""
    known = {"v": {"m": before}} if before else {}
    found, doubts = combine_lists([{"v": {"m": row}} for row in rows], known)
    return found["v"]["m"], [doubt.fact for doubt in doubts]


def test_of_two_lists_the_smaller_window_and_the_higher_price_count() -> None:
    row, doubts = combined(row_of(1_000_000, 2), row_of(204_800, 2.5))
    assert row == row_of(204_800, 2.5)
    assert doubts == ["window"]


def test_a_bold_change_by_one_list_is_not_believed_by_two_it_is() -> None:
    before, bold = row_of(100_000, 5), row_of(900_000, 0)
    row, doubts = combined(bold, before=before[:6])
    assert row == before
    assert doubts == ["window", "price of input", "price of output"]
    assert combined(bold, bold, before=before) == (bold, [])


def test_a_modest_change_by_one_list_is_believed() -> None:
    changed = row_of(200_000, 3)
    assert combined(changed, before=row_of(100_000, 5)) == (changed, [])


def test_models_that_no_list_has_any_more_stay() -> None:
    before: Rows = {"v": {"old": [9000]}}
    rows, _ = combine_lists([{"v": {"m": row_of(8000, 1)}}], before)
    assert [*rows["v"]] == ["old", "m"]


@given(VALUES)
def test_a_public_list_may_be_any_json(value: Any) -> None:
    text = {"input": value, "output": ["text"]}
    model = {"limit": value, "modalities": text, "cost": value, "tool_call": value}
    fact_of_each = dict.fromkeys(("max_input_tokens", "supported_endpoints"), value)
    listed = {
        "google": {"models": {"a": value, "b": model, "c": {**model, "limit": {}}}},
        "openai": value,
        "m": {**CHAT, **fact_of_each, "reasoning_effort_levels": value},
    }
    for public in LISTS:
        assert of_rows({"v": {m: row for _, m, row in public.rows(listed)}}).rows


# Values of model facts: read from lists and files that nobody vouches for


ALL = ModelFacts(
    "m",
    window=400_000,
    max_output=128_000,
    chats=True,
    tools=True,
    most_tools=128,
    images=False,
    thinking=True,
    efforts=("low", "high"),
    sampling=False,
    adaptive_thinking=True,
    replay=Replay.TOOL_TURNS,
    empty_reasoning=True,
    dialect="openai_responses",
    printed_calls=False,
    family="qwen",
    price=Price(1.25, 10.0, 0.0, None),
)
# Only of the server that loaded it, for as long as it is loaded.
PASSING = {"loaded_window", "token_memory"}


def test_facts_that_were_written_are_read_again() -> None:
    assert set(ALL.known_fields()) == set(FIELDS) - PASSING
    written = json.loads(json.dumps(write_facts(ALL)))
    assert read_facts("m", written) == ALL
    assert read_facts("m", write_facts(ModelFacts("m"))) == ModelFacts("m")
    assert write_facts(ModelFacts("m", loaded_window=4096)) == {}


@given(OBJECTS | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES)))
def test_facts_may_be_any_json(value: Any) -> None:
    facts = read_facts("m", value)
    assert read_facts("m", write_facts(facts)) == facts


@pytest.mark.parametrize(
    "odd", [0, -1, True, 5, 2**40, 10**400, "x", "1e99", 1.5, None, [1], float("nan")]
)
def test_a_window_that_cannot_be_one_is_unknown(odd: Any) -> None:
    assert read_window(odd) == 0


# Facts of several sources become one record, and each fact has its source


def test_the_first_source_that_knows_a_fact_counts() -> None:
    combined = combine_facts(
        "m",
        [
            (FactSource.TABLE, ModelFacts("x", 8192, images=True, price=Price(1.0))),
            (FactSource.SERVER, ModelFacts("m", 4096, replay=Replay.NEVER)),
            (FactSource.USER, ModelFacts("m", images=False)),
        ],
    )
    assert combined.facts == ModelFacts(
        "m", 4096, images=False, replay=Replay.NEVER, price=Price(1.0)
    )
    assert combined.sources == {
        "window": FactSource.SERVER,
        "images": FactSource.USER,
        "replay": FactSource.SERVER,
        "price": FactSource.TABLE,
    }
