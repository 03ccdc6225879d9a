"""Responses: write token counts."""

from typing import Any

from byok.events import Usage


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts; the input includes what was read from a cache."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
