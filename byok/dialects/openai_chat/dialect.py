"""The dialect of OpenAI Chat Completions and of compatible APIs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from byok.core.chat import ChatRequest, Json
from byok.core.events import StreamEvent
from byok.core.stage import Stage, chain
from byok.core.wire.json_fields import objects_in, read_objects, read_text
from byok.core.wire.sse import SSEDecoder
from byok.dialects.base import Dialect, ModelPage, Probe, Target, UpstreamRequest
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

# OpenAI's model list: ids, and what vendors add about their models.
#
# Sources of the fields: recorded lists and the API references of OpenRouter, Groq,
# Mistral, Together, Fireworks, DeepInfra, Vercel, Perplexity, Hugging Face and vLLM.


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


def read_models(body: Any) -> ModelPage:
    """Decode `GET models`: `{"data": [{"id"}]}`, or the bare array that some send."""
    rows = body.get("data") if isinstance(body, dict) else body
    found = objects_in(rows[:_MOST] if isinstance(rows, list) else None)
    named = [row for row in found if read_text(row, "id")]
    return ModelPage(tuple(_facts(row["id"], row) for row in named))


def _facts(model: str, row: Json) -> ModelFacts:
    if row.keys() <= _BARE:
        return ModelFacts(model)
    places = [row, *objects_in([row.get(name) for name in _INNER])]
    hosts = read_objects(row, "providers")  # of Hugging Face's router
    both = [*places, *hosts]
    takes = _words(places, "input_modalities")
    gives = _words(places, "output_modalities")
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
        price=_price(both),
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
    tables = objects_in([place.get("pricing") for place in places])
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


# The context window of a model that a local server has loaded.
#
# The model list does not contain it, and Ollama and LM Studio silently truncate prompts
# that exceed it. Sources: the servers' API references (Ollama `GET /api/ps`, LM Studio
# `GET /api/v1/models`, before its version 0.4 `GET /api/v0/models`, llama.cpp `GET
# /props`).


_LATEST = ":latest"  # Ollama's name for a model without a tag


def read_loaded_window(body: Any, model: str) -> int:
    """Return the window in tokens; 0 where the model is not loaded or it is unknown."""
    if not isinstance(body, dict):
        return 0
    settings = body.get("default_generation_settings")
    if isinstance(settings, dict):  # llama.cpp has one model: that of one slot
        return read_positive(settings.get("n_ctx"))
    wanted = (model, f"{model}{_LATEST}")
    rows = objects_in(body.get("models") or body.get("data"))
    return next((size for row in rows if (size := _read_row(row, wanted))), 0)


def _read_row(row: dict[str, Any], wanted: tuple[str, ...]) -> int:
    """Return the window of a row about one of these names, else 0."""
    if isinstance(row.get("loaded_instances"), list):
        loaded, is_any = read_objects(row, "loaded_instances"), row.get("key") in wanted
        configs = [i.get("config") for i in loaded if is_any or i.get("id") in wanted]
        sizes = (config.get("context_length") for config in objects_in(configs))
        return min(filter(None, map(read_positive, sizes)), default=0)
    name = row.get("model") or row.get("name") or row.get("id")
    if name not in wanted:
        return 0
    return read_positive(row.get("context_length") or row.get("loaded_context_length"))


def openai_headers(key: str, auth_header: str) -> Mapping[str, str]:
    """Return the headers of every request; `Authorization` takes `Bearer <key>`."""
    headers = {"Accept": "text/event-stream, application/json"}
    if key:
        is_bearer = auth_header == "Authorization"
        headers[auth_header] = f"Bearer {key}" if is_bearer else key
    return headers


@dataclass(frozen=True)
class OpenAIChat(Dialect):
    """Dialect: Chat Completions as one vendor implements it."""

    quirks: Quirks = DEFAULT

    name: ClassVar[str] = OPENAI_CHAT
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
        """Return what the vendor is known for."""
        return self.quirks.needs

    @property
    def tool_ids(self) -> IdRule:
        """Return which ids of tool calls the vendor takes."""
        return self.quirks.tool_ids

    def encode(self, chat: ChatRequest, target: Target) -> UpstreamRequest:
        """Encode a chat/completions request."""
        return encode_request(chat, target, self.quirks)

    def reader(self, sent: UpstreamRequest) -> Stage[bytes, StreamEvent]:
        """Decode chat.completion.chunk events, or one chat.completion."""
        return chain(SSEDecoder(), OpenAIAnswer(sent.tool_names, sent.origin))

    @property
    def second_best(self) -> frozenset[str]:
        """Chats, where the vendor has an API of its own that does more."""
        return frozenset({"chat/completions"} if self.quirks.stands_in else ())

    def url(self, base_url: str, path: str) -> str:
        """Return the URL of a path; a path with a leading "/" is beside /v1."""
        if path.startswith("/"):
            return without_ending(base_url, DEFAULT_PATHS[OPENAI_CHAT]) + path
        return f"{base_url}/{path}"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers; the key is a bearer token or in the vendor's header."""
        return openai_headers(key, self.quirks.auth_header)

    def probes(self, model: str) -> tuple[Probe, ...]:
        """Ask a local server about the model that it has loaded."""
        return tuple(map(Probe, self.quirks.loaded))

    def read_probe(self, body: Any, model: str) -> ModelFacts:
        """Decode the window of a loaded model."""
        return ModelFacts(model, read_loaded_window(body, model))
