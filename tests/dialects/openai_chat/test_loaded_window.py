"""The windows of loaded models, as local servers tell them."""

from typing import Any

import pytest

from byok.dialects.openai_chat.dialect import read_loaded_window

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
        (OLLAMA, "qwen3:latest", 4096),
        (OLLAMA, "qwen3", 4096),
        (OLLAMA, "qwen", 0),
        (OLLAMA, "other", 0),
        (LM_STUDIO, "a", 8192),
        (LM_STUDIO, "b", 0),
        (LM_STUDIO_1, "a", 8192),  # either of them may answer
        (LM_STUDIO_1, "a:2", 8192),
        (LM_STUDIO_1, "b", 0),
        (LLAMA, "whatever", 4096),
    ],
)
def test_the_window_of_a_loaded_model(body: Any, model: str, window: int) -> None:
    assert read_loaded_window(body, model) == window


@pytest.mark.parametrize(
    "body",
    [
        None, [], "x", {}, {"models": None}, {"models": {}}, {"models": [1, None, {}]},
        {"models": [{"name": "m", "context_length": "4096"}]},
        {"models": [{"name": "m", "context_length": -1}]},
        {"models": [{"name": "m", "context_length": True}]},
        {"default_generation_settings": []},
        {"default_generation_settings": {"n_ctx": 0}},
    ],
    ids=str,
)  # fmt: skip
def test_loaded_context_window_that_cannot_be_read_is_unknown(body: Any) -> None:
    assert read_loaded_window(body, "m") == 0
