"""A request as a span: OpenTelemetry's attributes for generative AI, never content.

The names are those of the semantic conventions after 1.36 (`gen_ai.provider.name`);
what these have no name for begins with `byok.`.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from byok.escapes import escape
from byok.events import Usage
from byok.record import RequestOutcome, RequestRecord

Attributes: TypeAlias = dict[str, str | int | float]
_LONGEST, _LONGEST_READ = 200, 1000  # characters of a text
_MOST_TOKENS = 10**12
_OPERATIONS = {
    "/v1/embeddings": "embeddings",
    "/v1/completions": "text_completion",
    "/completion": "text_completion",
}
# By the preset of an upstream, where the conventions have another name for it.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}


def span_name(record: RequestRecord, hide: Callable[[str], str]) -> str:
    """Return the name of a request's span: what was asked of which model."""
    return f"{_operation(record)} {_label(record.model, hide)}".rstrip()


def attributes_of(
    record: RequestRecord,
    presets: Mapping[str, str],
    cost: float | None,
    hide: Callable[[str], str],
) -> Attributes:
    """Return the attributes of a request that has ended.

    `presets` are the presets of the upstreams by name, `cost` is in US dollars, `hide`
    removes secrets.
    """
    preset = presets.get(record.upstream, record.upstream)
    found: Attributes = {
        "gen_ai.operation.name": _operation(record),
        "gen_ai.provider.name": _PROVIDERS.get(preset, preset),
        "gen_ai.request.model": record.model,
        "gen_ai.conversation.id": record.conversation,
        "byok.upstream": record.upstream,
        "byok.endpoint": record.endpoint,
        "byok.purpose": record.purpose,
        "byok.client": record.client,
        "byok.request_id": record.request_id,
        "byok.attempts": record.attempts,
        "byok.repairs": record.repairs,
        "byok.dropped_calls": record.dropped_calls,
        "byok.notices": record.notices,
        "byok.status": record.status,
        "error.type": error_type(record),
    }
    if record.first_byte is not None:
        found["gen_ai.response.time_to_first_chunk"] = record.first_byte
    if cost is not None:
        found["byok.cost_usd"] = cost
    if usage := record.total_usage:
        found |= _tokens(usage)
    return {
        name: _label(value, hide) if isinstance(value, str) else value
        for name, value in found.items()
        if value != ""
    }


def error_type(record: RequestRecord) -> str:
    """Return what kind of failure a request ended with, "" for none."""
    cancelled = record.outcome is RequestOutcome.CANCELLED
    return record.error or ("cancelled" if cancelled else "")


def _operation(record: RequestRecord) -> str:
    return _OPERATIONS.get(record.endpoint, "chat")


def _tokens(usage: Usage) -> Attributes:
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: min(max(n, 0), _MOST_TOKENS) for name, n in counts.items()}


def _label(text: str, hide: Callable[[str], str]) -> str:
    return escape(hide(text[:_LONGEST_READ]))[:_LONGEST]
