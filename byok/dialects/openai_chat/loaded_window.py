"""The context window of a model that a local server has loaded.

The model list does not contain it, and Ollama and LM Studio silently truncate prompts
that exceed it. Sources: the servers' API references (Ollama `GET /api/ps`, LM Studio
`GET /api/v0/models`, llama.cpp `GET /props`).
"""

from typing import Any

_LATEST = ":latest"  # Ollama's name for a model without a tag


def read_loaded_window(body: Any, model: str) -> int:
    """Return the window in tokens; 0 where the model is not loaded or it is unknown."""
    if not isinstance(body, dict):
        return 0
    settings = body.get("default_generation_settings")
    if isinstance(settings, dict):  # llama.cpp has one model: that of one slot
        return _count(settings.get("n_ctx"))
    rows = body.get("models") or body.get("data")
    if not isinstance(rows, list):
        return 0
    wanted = (model, f"{model}{_LATEST}")
    found = (row for row in rows if isinstance(row, dict) and _name(row) in wanted)
    row = next(found, {})
    return _count(row.get("context_length") or row.get("loaded_context_length"))


def _name(row: dict[str, Any]) -> object:
    return row.get("model") or row.get("name") or row.get("id")


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
