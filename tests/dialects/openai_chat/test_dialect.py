"""The dialect of OpenAI's Chat Completions: path, key, list of models."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from byok.dialects.base import Probe
from byok.dialects.model_facts import ModelFacts, Price
from byok.dialects.openai_chat.dialect import (
    OpenAIChat,
    read_loaded_window,
    read_models,
)
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.values import VALUES


@pytest.mark.parametrize(
    ("vendor", "headers"),
    [
        ("openai", {"Authorization": "Bearer k"}),
        ("azure", {"api-key": "k"}),
    ],
)
def test_openai_chat_api_key_header(vendor: str, headers: dict[str, str]) -> None:
    accepts = {"Accept": "text/event-stream, application/json"}
    assert OpenAIChat.of(vendor).headers("k") == accepts | headers
    assert OpenAIChat.of(vendor).headers("") == accepts


def test_http_sender_keeps_the_base_of_a_path_beside_the_api() -> None:
    for base, beside in (
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/infill"),
        ("https://host/llama/v1", "https://host/llama/infill"),
        ("https://host/llama", "https://host/llama/infill"),
        ("https://v1/v1", "https://v1/infill"),
        ("https://v1", "https://v1/infill"),
    ):
        assert OpenAIChat().url(base, "/infill") == beside
        assert OpenAIChat().url(base, "models") == f"{base}/models"


def test_only_a_server_that_loads_models_is_asked_about_them() -> None:
    assert OpenAIChat.of("ollama").probes("a") == (Probe("/api/ps"),)
    assert OpenAIChat.of("openai").probes("a") == ()
    loaded = {"models": [{"model": "a", "context_length": 4096}]}
    assert OpenAIChat.of("ollama").read_probe(loaded, "a") == ModelFacts("a", 4096)


# Lists of models: what they are called, and how much they take


def model_ids(body: Any) -> list[str]:
    return [model.id for model in read_models(body).models]


def model_windows(body: Any) -> dict[str, int]:
    return {
        model.id: model.window for model in read_models(body).models if model.window
    }


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
        "context_size",
    ],
)
def test_model_list_context_window_is_read_from_each_vendors_field(field: str) -> None:
    assert windows(**{field: 32_768}) == {"m": 32_768}
    assert windows(**{field: "32768"}) == {"m": 32_768}


def test_model_list_smallest_of_several_context_windows_counts() -> None:
    best = {"context_length": 65_536, "max_completion_tokens": 4096}
    assert windows(context_length=131_072, top_provider=best) == {"m": 65_536}
    assert windows(context_length=131_072, top_provider=None) == {"m": 131_072}


@pytest.mark.parametrize("odd", [0, -1, True, 5, 2**40, "many", 32768.5, None, [1]])
def test_model_list_invalid_context_window_is_ignored(odd: Any) -> None:
    assert windows(context_length=odd) == {}


def test_an_endless_list_is_cut() -> None:
    rows = [{"id": str(number)} for number in range(6000)]
    assert len(read_models(rows).models) == 2000


def model(**fields: Any) -> ModelFacts:
    (facts,) = read_models([{"id": "m", **fields}]).models
    return facts


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        pytest.param(
            {
                "context_length": 400_000,
                "architecture": {
                    "input_modalities": ["text", "image"],
                    "output_modalities": ["text"],
                },
                "pricing": {
                    "prompt": "0.00000125",
                    "completion": "0.00001",
                    "input_cache_read": "0.000000125",
                    "web_search": "0.01",
                },
                "top_provider": {"max_completion_tokens": 128_000},
                "supported_parameters": ["tools", "reasoning", "max_tokens"],
            },
            ModelFacts(
                "m",
                window=400_000,
                max_output=128_000,
                chats=True,
                tools=True,
                images=True,
                thinking=True,
                sampling=False,
                price=Price(1.25, 10.0, 0.125),
            ),
            id="OpenRouter",
        ),
        pytest.param(
            {
                "capabilities": {
                    "completion_chat": False,
                    "function_calling": True,
                    "vision": True,
                }
            },
            ModelFacts("m", chats=False, tools=True, images=True),
            id="Mistral",
        ),
        pytest.param(
            {
                "providers": [
                    {"context_length": 9000, "supports_tools": False},
                    {
                        "context_length": 8000,
                        "supports_tools": True,
                        "pricing": {"input": 0.3, "output": 1},
                    },
                    {"pricing": {"input": 0.5, "output": 0}},
                ]
            },
            ModelFacts("m", window=8000, tools=True, price=Price(0.5, 1.0)),
            id="Hugging Face",
        ),
        pytest.param(
            {"pricing": {"input": 10, "output": 50, "cache_write": 12.5, "unit": "M"}},
            ModelFacts("m", price=Price(10.0, 50.0, None, 12.5)),
            id="Perplexity",
        ),
    ],
)
def test_a_list_may_tell_more_of_a_model(
    fields: dict[str, Any], facts: ModelFacts
) -> None:
    assert model(**fields) == facts


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


# The windows of loaded models, as local servers tell them


OLLAMA = {
    "models": [
        {"name": "other:7b", "model": "other:7b", "context_length": 2048},
        {"name": "qwen3:latest", "model": "qwen3:latest", "context_length": 4096},
    ]
}
LM_STUDIO = {
    "data": [
        {"id": "a", "state": "loaded", "max_context_length": 131072,
         "loaded_context_length": 8192},
        {"id": "b", "state": "not-loaded", "max_context_length": 32768},
    ]
}  # fmt: skip
LM_STUDIO_1 = {
    "models": [
        {"type": "llm", "key": "a", "max_context_length": 131072, "loaded_instances": [
            {"id": "a", "config": {"context_length": 16384}},
            {"id": "a:2", "config": {"context_length": 8192}},
            {"id": "a:3", "config": None}, "odd",
        ]},
        {"type": "llm", "key": "b", "max_context_length": 32768,
         "loaded_instances": []},
    ]
}  # fmt: skip
LLAMA = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 2}


@pytest.mark.parametrize(
    ("body", "model", "window"),
    [
        (OLLAMA, "qwen3", 4096),
        (OLLAMA, "other", 0),
        (OLLAMA, "qwen", 0),
        (LM_STUDIO, "a", 8192),
        (LM_STUDIO_1, "a", 8192),  # either of them may answer
        (LM_STUDIO_1, "a:2", 8192),
        (LM_STUDIO_1, "b", 0),
        (LLAMA, "whatever", 4096),
    ],
)
def test_the_window_of_a_loaded_model(body: Any, model: str, window: int) -> None:
    assert read_loaded_window(body, model) == window
