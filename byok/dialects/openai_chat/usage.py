"""Token counts in answers of OpenAI and of compatible servers."""

import json
from typing import Any

from byok.chat import Json
from byok.events import Usage

_DECODER = json.JSONDecoder()
_LONGEST = 2000  # characters of a usage object

# OpenAI and Moonshot, Mistral, DeepSeek, Claude behind a gateway
_READ = (
    "cached_tokens",
    "num_cached_tokens",
    "prompt_cache_hit_tokens",
    "cache_read_input_tokens",
)
# OpenAI and OpenRouter, LiteLLM, Claude behind a gateway
_WRITTEN = (
    "cache_write_tokens",
    "cache_creation_tokens",
    "cache_creation_input_tokens",
)


def read_usage(usage: Any) -> Usage | None:
    """Decode a usage object; None where it has no counts.

    Prompt tokens include the cached part (OpenAI API reference, usage).
    """
    if not isinstance(usage, dict):
        return None
    prompt = _count(usage.get("prompt_tokens") or usage.get("input_tokens"))
    completion = _count(usage.get("completion_tokens") or usage.get("output_tokens"))
    if not prompt and not completion:
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    places = (usage, details) if isinstance(details, dict) else (usage,)
    read, written = (
        max(_count(place.get(name)) for place in places for name in names)
        for names in (_READ, _WRITTEN)
    )
    told = any(place.get(name) is not None for place in places for name in _READ)
    return Usage(prompt, completion, read, written, _reasoning(usage), cache_told=told)


def _reasoning(usage: Json) -> int:
    """Return the tokens of reasoning; xAI's completion tokens do not include them."""
    details = usage.get("completion_tokens_details")
    details = details or usage.get("output_tokens_details")
    places = (details, usage) if isinstance(details, dict) else (usage,)
    return max(_count(place.get("reasoning_tokens")) for place in places)


def usage_near_end(answer: bytes) -> Usage | None:
    """Return the last usage object of an answer that is passed on, or None."""
    start = answer.rfind(b'"usage"')
    start = answer.find(b"{", start) if start >= 0 else -1
    if start < 0:
        return None
    try:
        text = answer[start : start + _LONGEST].decode(errors="replace")
        usage, _ = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return read_usage(usage)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
