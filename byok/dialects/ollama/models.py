"""Ollama: what its server tells of models.

`GET /api/tags` lists them, `POST /api/show` describes one, `GET /api/ps` lists the
loaded ones with the window that each was loaded with. Source: its API reference.
"""

import re
from typing import Any

from byok.chat import Json
from byok.dialects.model_facts import ModelFacts

TAGS, SHOW, PS = "/api/tags", "/api/show", "/api/ps"
_LATEST = ":latest"  # the name of a model without a tag
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_ELEMENT = 2  # bytes of a number in the cache of keys and values
_LOCAL_LAYERS = 4  # at most every fourth layer is taken to see the whole window


def read_models(body: Any) -> tuple[ModelFacts, ...]:
    """Decode the list; models that only embed are left out."""
    rows = body.get("models") if isinstance(body, dict) else None
    rows = rows if isinstance(rows, list) else []
    found = (_list_row(row) for row in rows if isinstance(row, dict))
    return tuple(facts for facts in found if facts is not None)


def read_probe(body: Any, model: str) -> ModelFacts:
    """Decode a description, or the list of loaded models."""
    if not isinstance(body, dict):
        return ModelFacts(model)
    if isinstance(rows := body.get("models"), list):
        wanted = (model, f"{model}{_LATEST}")
        named = (row for row in rows if isinstance(row, dict))
        row = next((row for row in named if _name(row) in wanted), {})
        return ModelFacts(model, loaded_window=_count(row.get("context_length")))
    info = body.get("model_info")
    info = info if isinstance(info, dict) else {}
    settings = body.get("parameters")
    preset = _NUM_CTX.search(settings) if isinstance(settings, str) else None
    return ModelFacts(
        model,
        window=_count(_of_family(info, "context_length")),
        loaded_window=int(preset[1]) if preset else 0,
        token_memory=_token_memory(info),
        **_capabilities(body),
    )


def _list_row(row: Json) -> ModelFacts | None:
    capabilities = row.get("capabilities")
    if isinstance(capabilities, list) and "completion" not in capabilities:
        return None
    details, name = row.get("details"), _name(row)
    window = details.get("context_length") if isinstance(details, dict) else 0
    if not isinstance(name, str) or not name:
        return None
    # The list misses what only the template inside a model's file tells.
    able: dict[str, Any] = {n: True for n, has in _capabilities(row).items() if has}
    return ModelFacts(name, window=_count(window), **able)


def _name(row: Json) -> object:
    return row.get("model") or row.get("name")


def _capabilities(body: Json) -> dict[str, Any]:
    """Return what a model can do; an absent list tells nothing."""
    able = body.get("capabilities")
    if not isinstance(able, list) or not able:
        return {}
    names = {"tools": "tools", "images": "vision", "thinking": "thinking"}
    return {fact: name in able for fact, name in names.items()}


def _of_family(info: Json, name: str) -> Any:
    """Return a value that is named after the model's architecture."""
    return info.get(f"{info.get('general.architecture')}.{name}")


def _token_memory(info: Json) -> int:
    """Estimate how many bytes the keys and values of a token take in all layers.

    Models with a sliding window keep few tokens in most layers. The server may keep
    the numbers in less than 16 bits, so this is an upper bound.
    """
    layers = _count(_of_family(info, "block_count"))
    heads = _count(_of_family(info, "attention.head_count"))
    own = _of_family(info, "attention.head_count_kv")
    many = [n for n in map(_count, own) if n] if isinstance(own, list) else []
    if many:
        layers, shared = len(many), max(many)
    else:
        shared = _count(own) or heads
    width = _count(_of_family(info, "embedding_length")) // heads if heads else 0
    key = _count(_of_family(info, "attention.key_length")) or width
    value = _count(_of_family(info, "attention.value_length")) or width
    if _count(_of_family(info, "attention.sliding_window")):
        layers = -(-layers // _LOCAL_LAYERS)
    return layers * shared * (key + value) * _ELEMENT


def _count(value: Any) -> int:
    return int(value) if type(value) is int and value > 0 else 0
