"""The section about embeddings: off by default, one model, prefixes of one's own."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.settings import Settings
from byok.settings.sections import EmbeddingSettings


def test_config_embeddings_are_off_until_an_upstream_is_named() -> None:
    assert not Settings().embeddings.on
    assert EmbeddingSettings(upstream="ollama", model="nomic-embed-text").on
    assert not EmbeddingSettings(model="nomic-embed-text").on


def test_config_embeddings_tell_no_prefix_from_the_model_s_own() -> None:
    assert EmbeddingSettings().query_prefix is None
    assert EmbeddingSettings(query_prefix="").query_prefix == ""


@pytest.mark.parametrize(
    "given",
    [
        {"upstream": "ollama"},
        {"upstream": "https://h/v1", "model": "m"},
        {"upstream": "Ollama", "model": "m"},
        {"upstream": "demo", "model": "m"},
        {"upstream": "ollama", "model": "m\n"},
        {"upstream": "ollama", "model": "m" * 201},
        {"dimensions": -1},
        {"dimensions": 8193},
        {"document_prefix": "x" * 1001},
        {"price": -1.0},
        {"price": float("nan")},
        {"price": float("inf")},
        {"unknown": 1},
    ],
    ids=str,
)
def test_config_refuses_embeddings_that_cannot_work(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(embeddings=EmbeddingSettings.model_validate(given))
