"""The dialect of OpenAI Chat Completions and of compatible APIs.

Sources for the list of models: recorded lists and the API references of OpenRouter,
Groq, Mistral, Together, Fireworks, DeepInfra, Vercel, Perplexity, Hugging Face and
vLLM.

The list does not contain the window of a model that a local server has loaded, and
Ollama and LM Studio silently truncate prompts that exceed it. Sources: the servers' API
references (Ollama `GET /api/ps`, LM Studio `GET /api/v1/models`, before its version 0.4
`GET /api/v0/models`, llama.cpp `GET /props`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.core.chat import ChatRequest, Json
from byok.core.wire.json_fields import objects_in, read_objects, read_text
from byok.dialects.base import (
    Dialect,
    ModelPage,
    Probe,
    Target,
    UpstreamRequest,
    make_headers,
)
from byok.dialects.model_facts import (
    ModelFacts,
    Price,
    read_dollars,
    read_flag,
    read_number,
    read_output,
    read_positive,
    read_window,
)
from byok.dialects.openai_chat.answer import OpenAIAnswer
from byok.dialects.openai_chat.remedies import REMEDIES
from byok.dialects.openai_chat.request import encode_request
from byok.dialects.presets import (
    DEFAULT,
    DEFAULT_PATHS,
    OPENAI_CHAT,
    Quirks,
    quirks_of,
    without_ending,
)
from byok.dialects.remedies import RemedyTable
from byok.dialects.safe_names import IdRule

# The fields for the context window. The window of the model's training (llama.cpp's
# `n_ctx_train`) is not that of its server.
_WINDOW_FIELDS = (
    "max_model_len",  # vLLM
    "context_window",  # Groq
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic, LiteLLM
    "context_size",  # Novita
)
_OUTPUT_FIELDS = (
    "max_completion_tokens",  # OpenRouter, Groq
    "max_output_length",  # Groq, Chutes
    "max_output_tokens",  # LiteLLM, Novita
)
# The fields for prices of the prompt, the answer, cache reads and cache writes.
_PRICE_FIELDS = (
    ("prompt", "input", "input_tokens"),
    ("completion", "output", "output_tokens"),
    ("input_cache_read", "cache_read", "cached_input"),
    ("input_cache_write", "cache_write"),
)
_MAX_PER_TOKEN = 0.001  # dollars; higher prices are for a million tokens
_MILLION = 1_000_000
_MAX_ROWS = 2000  # the longest known list has 600; a row takes 0.05 ms
_STANDARD_FIELDS = {
    "id",
    "object",
    "created",
    "owned_by",
    "permission",
    "root",
    "parent",
}
# Objects in rows with fields that other vendors have in the row itself.
_INNER_OBJECTS = ("top_provider", "architecture", "capabilities", "metadata", "limits")
_LATEST = ":latest"  # Ollama's name for a model without a tag


def read_models(body: Any) -> ModelPage:
    """Decode `GET models`: `{"data": [{"id"}]}`, or the bare array that some send."""
    rows = body.get("data") if isinstance(body, dict) else body
    objects = objects_in(rows[:_MAX_ROWS] if isinstance(rows, list) else None)
    named = [row for row in objects if read_text(row, "id")]
    return ModelPage(tuple(_facts(row["id"], row) for row in named))


def _facts(model: str, row: Json) -> ModelFacts:
    if row.keys() <= _STANDARD_FIELDS:
        return ModelFacts(model)
    holders = [row, *objects_in([row.get(name) for name in _INNER_OBJECTS])]
    hosts = read_objects(row, "providers")  # of Hugging Face's router
    flags = (read_flag(host.get("supports_tools")) for host in hosts)
    host_flags = [flag for flag in flags if flag is not None]
    all_holders = [*holders, *hosts]
    inputs = _words(holders, "input_modalities")
    outputs = _words(holders, "output_modalities")
    parameters = _words(
        holders, "supported_parameters", "supported_sampling_parameters"
    )
    features = _words(holders, "supported_parameters", "supported_features")
    return ModelFacts(
        model,
        window=_smallest(all_holders, _WINDOW_FIELDS, read_window),
        max_output=_smallest(all_holders, _OUTPUT_FIELDS, read_output),
        tools=_first(
            _flag(holders, "function_calling", "supports_tools"),
            _has(features, "tools"),
            any(host_flags) if host_flags else None,
        ),
        images=_first(
            _flag(holders, "vision", "supports_image_input"), _has(inputs, "image")
        ),
        thinking=_first(
            _flag(holders, "reasoning"), _has(features, "reasoning") or None
        ),
        sampling=_has(parameters, "temperature"),
        chats=_first(
            _flag(holders, "completion_chat", "supports_chat"), _has(outputs, "text")
        ),
        price=_price(all_holders),
    )


def _smallest(
    holders: Iterable[Json], names: Iterable[str], read: Callable[[Any], int]
) -> int:
    """Return the smallest of several limits: a router may use the smallest host."""
    names = tuple(names)
    limits = (read(holder.get(name)) for holder in holders for name in names)
    return min(filter(None, limits), default=0)


def _price(holders: Iterable[Json]) -> Price | None:
    """Return the prices; of several hosts the highest ones."""
    tables = objects_in([holder.get("pricing") for holder in holders])
    highest: list[float | None] = []
    for names in _PRICE_FIELDS:
        numbers = (read_number(table.get(name)) for table in tables for name in names)
        prices = (
            read_dollars(n * _MILLION if n is not None and n < _MAX_PER_TOKEN else n)
            for n in numbers
        )
        highest.append(max((p for p in prices if p is not None), default=None))
    return Price(*highest) if any(price is not None for price in highest) else None


def _words(holders: Iterable[Json], *names: str) -> list[str] | None:
    """Return the strings in all lists with these names, None if there are none."""
    values = [holder.get(name) for holder in holders for name in names]
    lists = [value for value in values if isinstance(value, list)]
    return [word for words in lists for word in words if isinstance(word, str)] or None


def _has(words: list[str] | None, word: str) -> bool | None:
    return None if words is None else word in words


def _flag(holders: Iterable[Json], *names: str) -> bool | None:
    flags = (read_flag(holder.get(name)) for holder in holders for name in names)
    return _first(*flags)


def _first(*flags: bool | None) -> bool | None:
    return next((flag for flag in flags if flag is not None), None)


def read_loaded_window(body: Any, model: str) -> int:
    """Return the window in tokens; 0 if it is unknown or the model is not loaded."""
    if not isinstance(body, dict):
        return 0
    settings = body.get("default_generation_settings")
    if isinstance(settings, dict):  # llama.cpp: the window of a slot
        return read_positive(settings.get("n_ctx"))
    names = (model, f"{model}{_LATEST}")
    rows = objects_in(body.get("models") or body.get("data"))
    return next((size for row in rows if (size := _loaded_window(row, names))), 0)


def _loaded_window(row: dict[str, Any], names: tuple[str, ...]) -> int:
    """Return the window in a row about a model with one of these names, else 0."""
    if isinstance(row.get("loaded_instances"), list):
        loaded = read_objects(row, "loaded_instances")
        is_model = row.get("key") in names
        configs = [i.get("config") for i in loaded if is_model or i.get("id") in names]
        sizes = (config.get("context_length") for config in objects_in(configs))
        return min(filter(None, map(read_positive, sizes)), default=0)
    name = row.get("model") or row.get("name") or row.get("id")
    if name not in names:
        return 0
    return read_positive(row.get("context_length") or row.get("loaded_context_length"))


@dataclass(frozen=True)
class OpenAIChat(Dialect):
    """Dialect: Chat Completions as one vendor implements it."""

    quirks: Quirks = DEFAULT

    name: ClassVar[str] = OPENAI_CHAT
    answer = OpenAIAnswer
    serves: ClassVar[frozenset[str]] = frozenset(
        {"chat/completions", "completions", "embeddings"}
    )
    remedies: ClassVar[RemedyTable] = REMEDIES
    read_models = staticmethod(read_models)
    sends_thoughts: ClassVar[bool] = True

    @classmethod
    def of(cls, vendor: str) -> "OpenAIChat":
        """Return the dialect of a vendor, named by its preset."""
        return cls(quirks_of(vendor))

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the remedies that the vendor's models need."""
        return self.quirks.needs

    @property
    def tool_ids(self) -> IdRule:
        """Return the rule for the ids of tool calls of the vendor."""
        return self.quirks.tool_ids

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a chat/completions request."""
        return encode_request(chat, target, self.quirks)

    @property
    def second_best(self) -> frozenset[str]:
        """Return the path of chats, if the vendor has another API that does more."""
        return frozenset({"chat/completions"} if self.quirks.stands_in else ())

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path; a path with a leading "/" is next to /v1."""
        if path.startswith("/"):
            return without_ending(base_url, DEFAULT_PATHS[OPENAI_CHAT]) + path
        return f"{base_url}/{path}"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the key is a bearer token or in the vendor's header."""
        return make_headers(key, self.quirks.auth_header)

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Return the requests to a local server about the model that it has loaded."""
        return tuple(map(Probe, self.quirks.loaded))

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Decode the window of a loaded model."""
        return ModelFacts(model, read_loaded_window(body, model))
