"""OpenAI's model list: ids, and the context windows that some vendors add."""

from typing import Any

from byok.dialects.model_facts import ModelFacts

# The fields with the context window. The one that a model was trained with (llama.cpp's
# `n_ctx_train`) is not what its server accepts.
_WINDOWS = (
    "max_model_len",  # vLLM
    "context_window",  # Groq
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic
)
_SANE = range(512, 2**31)


def read_models(body: Any) -> tuple[ModelFacts, ...]:
    """Decode `GET models`: `{"data": [{"id"}]}`, or the bare array that some send."""
    rows = body.get("data") if isinstance(body, dict) else body
    if not isinstance(rows, list):
        return ()
    return tuple(
        ModelFacts(row["id"], _window(row))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]
    )


def _window(row: dict[str, Any]) -> int:
    """Return the smallest window of a row: a router's best host may have less."""
    best = row.get("top_provider")
    places = (row, best) if isinstance(best, dict) else (row,)
    found = [place.get(name) for place in places for name in _WINDOWS]
    return min((n for n in found if type(n) is int and n in _SANE), default=0)
