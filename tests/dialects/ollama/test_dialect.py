"""The dialect of Ollama's own API: addresses, key, refusals, probes."""

from typing import Any

import pytest
from hypothesis import given

from byok.dialects.base import ErrorResponse, ModelPage, Probe
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.ollama.dialect import REMEDIES, Ollama, read_models, read_probe
from byok.dialects.remedies import RefusedRequest, Remedy
from tests.fakes.ollama_server import OllamaModel
from tests.fakes.values import VALUES


@pytest.mark.parametrize("base", ["http://h:1", "http://h:1/v1", "http://h:1/api"])
def test_a_base_url_may_be_that_of_other_clients(base: str) -> None:
    assert Ollama().url(base, "/api/chat") == "http://h:1/api/chat"
    assert Ollama().url("https://h/x/v1", "/api/ps") == "https://h/x/api/ps"
    for host in ("https://v1", "https://api"):
        assert Ollama().url(host, "/api/ps") == f"{host}/api/ps"


def test_only_the_cloud_needs_a_key() -> None:
    assert Ollama().headers("k")["Authorization"] == "Bearer k"
    assert "Authorization" not in Ollama().headers("")


def test_a_model_that_is_not_there_can_be_pulled() -> None:
    text = 'model "qwen9" not found, try pulling it first'
    error = Ollama().refusal(ErrorResponse(404, {"error": text}))
    assert "ollama pull qwen9" in error.hint


def test_the_list_has_one_page_and_a_model_is_asked_for_twice() -> None:
    dialect = Ollama.of("ollama")
    assert dialect.read_models({"models": [{"name": "a"}]}) == ModelPage(
        (ModelFacts("a"),)
    )
    assert dialect.models_path == "/api/tags"
    show = Probe("/api/show", {"model": "a"})
    assert dialect.probes("a") == (Probe("/api/ps"), show)
    assert dialect.sends_thoughts


# What Ollama's server tells of models


TAGS = {
    "models": [
        {
            "name": "qwen3:8b",
            "model": "qwen3:8b",
            "details": {"context_length": 40_960},
            "capabilities": ["completion", "tools", "thinking"],
        },
        {"name": "llama3:latest"},
        {"model": "nomic-embed-text:latest", "capabilities": ["embedding"]},
        {"model": 7},
        "odd",
    ]
}


def test_models_are_listed_with_what_they_can_do() -> None:
    assert read_models(TAGS).models == (
        ModelFacts("qwen3:8b", 40_960, tools=True, thinking=True),
        ModelFacts("llama3:latest"),
    )


def test_a_loaded_model_is_found_with_and_without_its_tag() -> None:
    body = {"models": [{"name": "qwen3:latest", "context_length": 8192}, "odd"]}
    assert read_probe(body, "qwen3") == ModelFacts("qwen3", loaded_window=8192)
    assert read_probe(body, "qwen3:latest").loaded_window == 8192
    assert read_probe(body, "other") == ModelFacts("other")


def test_a_description_tells_abilities_window_and_memory() -> None:
    shown = OllamaModel("tools", length=40_960, num_ctx=16_384).shown
    assert read_probe(shown, "qwen3") == ModelFacts(
        "qwen3",
        window=40_960,
        tools=True,
        images=False,
        thinking=False,
        loaded_window=16_384,
        token_memory=32 * 8 * (128 + 128) * 2,
    )


@pytest.mark.parametrize(
    ("changed", "memory"),
    [
        ({"a.attention.head_count_kv": 0}, 4 * 8 * 128 * 2),  # as many as heads
        ({"a.attention.key_length": 256}, 4 * 2 * (256 + 64) * 2),
        ({"a.attention.head_count_kv": [2, 0, 2, None]}, 2 * 2 * 128 * 2),
        ({"a.attention.sliding_window": 1024}, 1 * 2 * 128 * 2),
        ({"a.attention.head_count": 0}, 0),
        ({"general.architecture": "b"}, 0),
    ],
)
def test_the_memory_of_a_token_is_estimated_from_the_layers(
    changed: dict[str, Any], memory: int
) -> None:
    info = {
        "general.architecture": "a",
        "a.block_count": 4,
        "a.embedding_length": 512,
        "a.attention.head_count": 8,
        "a.attention.head_count_kv": 2,
        **changed,
    }
    assert read_probe({"model_info": info}, "m").token_memory == memory


@given(body=VALUES)
def test_any_json_is_read(body: object) -> None:
    read_models(body)
    assert read_probe(body, "m").id == "m"
    for inner in ({"models": body}, {"model_info": body, "capabilities": body}):
        read_models(inner)
        assert read_probe(inner, "m").id == "m"


# A refused level of thinking becomes a switch, or nothing


@pytest.mark.parametrize(
    ("think", "changed"), [("high", True), (True, None), (False, None)]
)
def test_a_refused_level_of_thinking_becomes_a_switch_or_nothing(
    think: object, changed: object
) -> None:
    sent = {"model": "m", "think": think}
    error = refusal_of({"error": 'think value "high" is not supported'}, 400)
    row = REMEDIES["think"]
    found = row.find(RefusedRequest(sent, error))
    assert found is not None and row.make
    assert row.make(sent, Remedy("think", *found)).get("think") is changed
