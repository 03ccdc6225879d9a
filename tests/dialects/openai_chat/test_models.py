"""Lists of models: what they are called, and how much they take."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from byok.dialects.openai_chat.models import read_models
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.values import VALUES


def model_ids(body: Any) -> list[str]:
    return [model.id for model in read_models(body)]


def model_windows(body: Any) -> dict[str, int]:
    return {model.id: model.window for model in read_models(body) if model.window}


def windows(**fields: Any) -> dict[str, int]:
    return model_windows({"data": [{"id": "m", **fields}, {"id": "n"}]})


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"id": "a"}, {"id": "b"}]},
        [{"id": "a"}, {"id": "b"}],
        {"data": [{"id": "a"}, {"id": ""}, {"id": 5}, {}, None, "c", {"id": "b"}]},
    ],
)
def test_model_list_ids_keep_their_order(body: Any) -> None:
    assert model_ids(body) == ["a", "b"]


@pytest.mark.parametrize(
    "field",
    [
        "max_model_len",
        "context_window",
        "context_length",
        "max_context_length",
        "max_input_tokens",
    ],
)
def test_model_list_context_window_is_read_from_each_vendors_field(field: str) -> None:
    assert windows(**{field: 32_768}) == {"m": 32_768}


def test_model_list_smallest_of_several_context_windows_counts() -> None:
    best = {"context_length": 65_536, "max_completion_tokens": 4096}
    assert windows(context_length=131_072, top_provider=best) == {"m": 65_536}
    assert windows(context_length=131_072, top_provider=None) == {"m": 131_072}


@pytest.mark.parametrize("odd", [0, -1, True, 5, 2**40, "32768", 32768.0, None, [1]])
def test_model_list_invalid_context_window_is_ignored(odd: Any) -> None:
    assert windows(context_length=odd) == {}


def test_what_a_model_was_trained_with_is_no_window() -> None:
    assert windows(meta={"n_ctx_train": 131_072}, n_ctx_train=131_072) == {}


@given(VALUES)
def test_model_list_may_be_any_json(body: Any) -> None:
    names = model_ids({"data": body})
    assert set(model_windows({"data": body})) <= set(names)


@pytest.mark.shared
def test_model_list_context_windows_of_recorded_lists(shared: Path) -> None:
    told = {}
    for item in recorded(shared, "models"):
        body = json.loads(bytes_of(shared, item))
        assert model_ids(body), item["id"]
        for name, window in model_windows(body).items():
            told[name] = window
    assert len(told) > 20
    assert min(told.values()) >= 512
