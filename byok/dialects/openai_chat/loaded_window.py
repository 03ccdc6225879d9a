"""The context window of a model that a local server has loaded.

The model list does not contain it, and Ollama and LM Studio silently truncate prompts
that exceed it. Sources: the servers' API references (Ollama `GET /api/ps`, LM Studio
`GET /api/v1/models`, before its version 0.4 `GET /api/v0/models`, llama.cpp
`GET /props`).
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
    found = (_read_row(row, wanted) for row in rows if isinstance(row, dict))
    return next((window for window in found if window), 0)


def _read_row(row: dict[str, Any], wanted: tuple[str, ...]) -> int:
    """Return the window of a row about one of these names, else 0."""
    instances = row.get("loaded_instances")
    if isinstance(instances, list):
        loaded = [i for i in instances if isinstance(i, dict)]
        is_any = row.get("key") in wanted
        configs = [i.get("config") for i in loaded if is_any or i.get("id") in wanted]
        windows = [
            _count(c.get("context_length")) for c in configs if isinstance(c, dict)
        ]
        return min(filter(None, windows), default=0)
    name = row.get("model") or row.get("name") or row.get("id")
    if name not in wanted:
        return 0
    return _count(row.get("context_length") or row.get("loaded_context_length"))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
