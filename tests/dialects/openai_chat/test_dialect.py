"""The dialect of OpenAI's Chat Completions: path, key, list of models."""

import pytest

from byok.dialects.base import ErrorResponse, Probe
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat


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


def test_a_refusal_takes_its_wait_from_the_headers() -> None:
    body = {"error": {"message": "Too many requests"}}
    response = ErrorResponse(429, body, {"retry-after": "7"})
    assert OpenAIChat().refusal(response).retry_after == 7


def test_only_a_server_that_loads_models_is_asked_about_them() -> None:
    assert OpenAIChat.of("ollama").probes("a") == (Probe("/api/ps"),)
    assert OpenAIChat.of("openai").probes("a") == ()
    loaded = {"models": [{"model": "a", "context_length": 4096}]}
    assert OpenAIChat.of("ollama").read_probe(loaded, "a") == ModelFacts("a", 4096)
