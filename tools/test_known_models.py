"""The table of known models, from a list of a few models."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from byok.dialects.known_models import read_table
from byok.dialects.model_facts import ModelFacts, Price
from tools.known_models import MOST_BYTES, SOURCE, TABLE, main, write_table

MEMBER = "litellm/model_prices_and_context_window_backup.json"
CHAT = {"mode": "chat", "litellm_provider": "openai"}


def facts(vendor: str, model: str, listed: dict[str, Any]) -> ModelFacts:
    table = read_table(json.loads(write_table(listed, SOURCE)))
    return table.facts(vendor, model)


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
        ("fireworks_ai/m", {**CHAT, "litellm_provider": "fireworks_ai"}),
        ("m", CHAT),
    ],
)
def test_what_nobody_asks_for_is_left_out(name: str, row: dict[str, Any]) -> None:
    rows = json.loads(write_table({name: row}, SOURCE))["vendors"]
    assert sum(map(len, rows.values())) == 0


def test_the_table_is_written_from_a_wheel(tmp_path: Path) -> None:
    wheel, table = tmp_path / "list.whl", tmp_path / "table.json"
    listed = {"m": {**CHAT, "max_input_tokens": 9000}}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, json.dumps(listed))
    assert main(["--wheel", str(wheel), "--table", str(table)]) == 0
    assert json.loads(table.read_bytes()) == {
        "source": f"LiteLLM {SOURCE.version}",
        "licence": "MIT License, Copyright (c) 2023 Berri AI",
        "date": SOURCE.day,
        "vendors": {"openai": {"m": [9000]}},
    }


def test_a_table_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    wheel, table = tmp_path / "list.whl", tmp_path / "table.json"
    row = {**CHAT, "max_input_tokens": 9000}
    with zipfile.ZipFile(wheel, "w") as archive:
        listed = {f"m{n:0100}": row for n in range(MOST_BYTES // 100)}
        archive.writestr(MEMBER, json.dumps(listed))
    assert main(["--wheel", str(wheel), "--table", str(table)]) == 1
    assert not table.exists()


def test_the_table_in_the_package_is_from_this_source_and_small() -> None:
    content = TABLE.read_bytes()
    assert len(content) <= MOST_BYTES
    assert json.loads(content)["source"] == f"LiteLLM {SOURCE.version}"
    assert json.loads(content)["date"] == SOURCE.day
