"""OpenAI's model list: ids, and what vendors add about their models.

Sources of the fields: recorded lists and the API references of OpenRouter, Groq,
Mistral, Together, Fireworks, DeepInfra, Vercel, Perplexity, Hugging Face and vLLM.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from byok.chat import Json
from byok.dialects.fact_values import (
    read_dollars,
    read_flag,
    read_number,
    read_output,
    read_window,
)
from byok.dialects.model_facts import ModelFacts, Price

# The fields with the context window. The one that a model was trained with (llama.cpp's
# `n_ctx_train`) is not what its server accepts.
_WINDOWS = (
    "max_model_len",  # vLLM
    "context_window",  # Groq
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic, LiteLLM
    "context_size",  # Novita
)
_OUTPUTS = (
    "max_completion_tokens",  # OpenRouter, Groq
    "max_output_length",  # Groq, Chutes
    "max_output_tokens",  # LiteLLM, Novita
)
# The names of prices: of the prompt, the answer, cache reads and cache writes.
_PRICES = (
    ("prompt", "input", "input_tokens"),
    ("completion", "output", "output_tokens"),
    ("input_cache_read", "cache_read", "cached_input"),
    ("input_cache_write", "cache_write"),
)
_PER_TOKEN = 0.001  # dollars; a lower price is for one token, others are for a million
_MILLION = 1_000_000
_MOST = 2000  # rows; the longest list known has 600, and one is read in 0.05 ms
_BARE = {"id", "object", "created", "owned_by", "permission", "root", "parent"}
# Where rows keep what others have in the row itself.
_INNER = ("top_provider", "architecture", "capabilities", "metadata", "limits")


def read_models(body: Any) -> tuple[ModelFacts, ...]:
    """Decode `GET models`: `{"data": [{"id"}]}`, or the bare array that some send."""
    rows = body.get("data") if isinstance(body, dict) else body
    if not isinstance(rows, list):
        return ()
    return tuple(
        _facts(row["id"], row)
        for row in rows[:_MOST]
        if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]
    )


def _facts(model: str, row: Json) -> ModelFacts:
    if row.keys() <= _BARE:
        return ModelFacts(model)
    places = [row, *_objects(row.get(name) for name in _INNER)]
    hosts = [*_objects(_list(row.get("providers")))]  # of Hugging Face's router
    both = [*places, *hosts]
    takes, gives = (
        _words(places, "input_modalities"),
        _words(places, "output_modalities"),
    )
    parameters = _words(places, "supported_parameters", "supported_sampling_parameters")
    features = _words(places, "supported_parameters", "supported_features")
    return ModelFacts(
        model,
        window=_smallest(both, _WINDOWS, read_window),
        max_output=_smallest(both, _OUTPUTS, read_output),
        tools=_first(
            _flag(places, "function_calling", "supports_tools"),
            _has(features, "tools"),
            _any(hosts, "supports_tools"),
        ),
        images=_first(
            _flag(places, "vision", "supports_image_input"), _has(takes, "image")
        ),
        thinking=_first(
            _flag(places, "reasoning"), _has(features, "reasoning") or None
        ),
        sampling=_has(parameters, "temperature"),
        chats=_first(
            _flag(places, "completion_chat", "supports_chat"), _has(gives, "text")
        ),
        price=_price([*places, *hosts]),
    )


def _smallest(
    places: Iterable[Json], names: Iterable[str], read: Callable[[Any], int]
) -> int:
    """Return the smallest of several limits: a router's best host may have less."""
    names = tuple(names)
    found = (read(place.get(name)) for place in places for name in names)
    return min(filter(None, found), default=0)


def _price(places: Iterable[Json]) -> Price | None:
    """Return the prices; of several hosts the highest ones."""
    tables = [*_objects(place.get("pricing") for place in places)]
    found = [_highest(tables, names) for names in _PRICES]
    return Price(*found) if any(price is not None for price in found) else None


def _highest(tables: Iterable[Json], names: Iterable[str]) -> float | None:
    names = tuple(names)
    prices = (_dollars(table.get(name)) for table in tables for name in names)
    return max((p for p in prices if p is not None), default=None)


def _dollars(value: Any) -> float | None:
    number = read_number(value)
    if number is not None and number < _PER_TOKEN:
        number *= _MILLION
    return read_dollars(number)


def _words(places: Iterable[Json], *names: str) -> list[str] | None:
    """Return the words of the lists of these names, None where there is none."""
    found = [place.get(name) for place in places for name in names]
    lists = [value for value in found if isinstance(value, list)]
    return [word for words in lists for word in words if isinstance(word, str)] or None


def _has(words: list[str] | None, word: str) -> bool | None:
    return None if words is None else word in words


def _flag(places: Iterable[Json], *names: str) -> bool | None:
    found = (read_flag(place.get(name)) for place in places for name in names)
    return _first(*found)


def _any(places: Iterable[Json], name: str) -> bool | None:
    """Tell whether any host says yes; None where none says anything."""
    said = [flag for p in places if (flag := read_flag(p.get(name))) is not None]
    return any(said) if said else None


def _first(*flags: bool | None) -> bool | None:
    return next((flag for flag in flags if flag is not None), None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(values: Iterable[Any]) -> Iterator[Json]:
    return (value for value in values if isinstance(value, dict))
