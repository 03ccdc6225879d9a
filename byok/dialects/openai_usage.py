"""Token counts as OpenAI's imitators report them."""

from typing import Any

from byok.events import Usage


def read_usage(usage: Any) -> Usage | None:
    """Read a usage object; None where it tells nothing.

    Prompt tokens include the cached part (OpenAI API reference, usage).
    """
    if not isinstance(usage, dict):
        return None
    prompt = _count(usage.get("prompt_tokens"))
    completion = _count(usage.get("completion_tokens"))
    if not prompt and not completion:
        return None
    details = usage.get("prompt_tokens_details")
    nested = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = nested or usage.get("cached_tokens")  # Moonshot has it at the top
    return Usage(prompt, completion, _count(cached))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
