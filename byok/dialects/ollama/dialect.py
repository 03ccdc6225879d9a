"""The dialect of Ollama's own API.

Its compatible API under /v1 has no field for the window, and silently drops the
beginning of a prompt that exceeds it. Source of the paths: Ollama's API reference.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.core.chat import Json
from byok.core.errors import RefusalKind, UpstreamRefused
from byok.core.wire.json_fields import read_object, read_objects, read_text
from byok.core.wire.json_lines import JsonLines
from byok.dialects.base import (
    Dialect,
    ErrorResponse,
    ModelPage,
    Probe,
    make_headers,
)
from byok.dialects.chat_changes import CHAT_ROWS
from byok.dialects.model_facts import ModelFacts, read_positive
from byok.dialects.ollama.answer import OllamaAnswer
from byok.dialects.ollama.request import encode_request
from byok.dialects.openai_chat.dialect import read_loaded_window
from byok.dialects.presets import FREE_CHOICE, OLLAMA, without_ending
from byok.dialects.remedies import (
    Body,
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    drop_parameter,
)

TAGS = "/api/tags"  # lists all models
SHOW = "/api/show"  # describes one model
PS = "/api/ps"  # lists the loaded models, with the window of each
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_NUMBER_BYTES = 2  # of a number in the cache of keys and values
# With a sliding window, every fourth layer at most is assumed to see the whole window.
_LAYERS_PER_FULL_LAYER = 4
_PARAMETER_KINDS = (RefusalKind.UNKNOWN, RefusalKind.BAD_PARAMETER)
_MISSING_MODEL = re.compile(r"model ['\"]([\w./:-]{1,100})['\"] not found")
_API_PATHS = ("/v1", "/api")  # which users copy from the settings of other clients


def read_models(body: Any) -> ModelPage:
    """Decode the list; models that only embed are left out."""
    models = map(_list_row, read_objects(body, "models"))
    return ModelPage(tuple(facts for facts in models if facts is not None))


def read_probe(body: Any, model: str) -> ModelFacts:
    """Decode a description, or the list of loaded models."""
    if not isinstance(body, dict):
        return ModelFacts(model)
    if isinstance(body.get("models"), list):
        return ModelFacts(model, loaded_window=read_loaded_window(body, model))
    info = read_object(body, "model_info")
    preset = _NUM_CTX.search(read_text(body, "parameters"))
    return ModelFacts(
        model,
        window=read_positive(_architecture_value(info, "context_length")),
        loaded_window=int(preset[1]) if preset else 0,
        token_memory=_token_memory(info),
        **_capabilities(body),
    )


def _list_row(row: Json) -> ModelFacts | None:
    capabilities = row.get("capabilities")
    if isinstance(capabilities, list) and "completion" not in capabilities:
        return None
    window = read_object(row, "details").get("context_length")
    if not isinstance(name := _name(row), str) or not name:
        return None
    # A capability that is missing in the list may still be in the model's template.
    known: dict[str, Any] = {n: True for n, has in _capabilities(row).items() if has}
    return ModelFacts(name, window=read_positive(window), **known)


def _name(row: Json) -> object:
    return row.get("model") or row.get("name")


def _capabilities(body: Json) -> dict[str, Any]:
    """Return the facts about a model's capabilities; none if they are not listed."""
    capabilities = body.get("capabilities")
    if not isinstance(capabilities, list) or not capabilities:
        return {}
    names = {"tools": "tools", "images": "vision", "thinking": "thinking"}
    return {fact: name in capabilities for fact, name in names.items()}


def _architecture_value(info: Json, name: str) -> Any:
    """Return a value whose key begins with the name of the architecture."""
    return info.get(f"{info.get('general.architecture')}.{name}")


def _token_memory(info: Json) -> int:
    """Estimate the bytes of the keys and values of one token in all layers.

    Models with a sliding window cache few tokens in most layers. The server may store
    numbers in less than 16 bits, so this is an upper bound.
    """
    layers = read_positive(_architecture_value(info, "block_count"))
    heads = read_positive(_architecture_value(info, "attention.head_count"))
    own = _architecture_value(info, "attention.head_count_kv")
    many = [n for n in map(read_positive, own) if n] if isinstance(own, list) else []
    if many:
        layers, shared = len(many), max(many)
    else:
        shared = read_positive(own) or heads
    width = (
        read_positive(_architecture_value(info, "embedding_length")) // heads
        if heads
        else 0
    )
    key = read_positive(_architecture_value(info, "attention.key_length")) or width
    value = read_positive(_architecture_value(info, "attention.value_length")) or width
    if read_positive(_architecture_value(info, "attention.sliding_window")):
        layers = -(-layers // _LAYERS_PER_FULL_LAYER)
    return layers * shared * (key + value) * _NUMBER_BYTES


def _find_think(refused: RefusedRequest) -> RemedyMatch:
    """Find a refused `think`: some models accept true and false, but no level."""
    is_named = "think" in refused.text.lower() and "think" in refused.body
    if not is_named or refused.error.kind not in _PARAMETER_KINDS:
        return None
    is_level = isinstance(refused.body["think"], str)
    return ("think", "switch" if is_level else "drop")


def _change_think(body: Json, remedy: Remedy) -> Body:
    if remedy.version == "drop":
        return drop_parameter(body, "think")
    is_level = isinstance(body.get("think"), str)
    return {**body, "think": True} if is_level else dict(body)


REMEDIES: RemedyTable = {
    **CHAT_ROWS,
    "think": RemedyRow(_find_think, _change_think),
}


@dataclass(frozen=True)
class Ollama(Dialect):
    """Dialect: Ollama's own API, which it serves on its machine and in its cloud."""

    name: ClassVar[str] = OLLAMA
    framing = JsonLines
    answer = OllamaAnswer
    loads_window: ClassVar[bool] = True
    sends_thoughts: ClassVar[bool] = True  # beside tool calls
    models_path: ClassVar[str] = TAGS
    remedies: ClassVar[RemedyTable] = REMEDIES
    settings: ClassVar[Collection[str]] = ("options",)
    needs: ClassVar[tuple[str, ...]] = FREE_CHOICE  # it has no field for the choice
    encode = staticmethod(encode_request)
    read_models = staticmethod(read_models)
    read_probe = staticmethod(read_probe)

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path; a base URL may end in the path of an API."""
        for ending in _API_PATHS:
            base_url = without_ending(base_url, ending)
        return base_url + path

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; only Ollama's cloud wants a key."""
        return make_headers(key) | {"Accept": "application/x-ndjson, application/json"}

    def refusal(self, response: ErrorResponse) -> UpstreamRefused:
        """Decode `{"error": "text"}`; a model that is not there can be pulled."""
        error = super().refusal(response)
        if missing := _MISSING_MODEL.search(error.message):
            return error.with_hint(
                f"Get it on that machine with: ollama pull {missing[1]}. byok models "
                "lists those that are there."
            )
        return error

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Return the requests for the loaded window and for a description."""
        return (Probe(PS), Probe(SHOW, {"model": model}))
