"""Gemini's signatures of tool calls in Chat Completions: what replaces missing ones.

It stands beside the call, or as an entry of `reasoning_details` where a router passes
signatures on in these.
"""

from typing import Any

from byok.dialects.thought_signatures import NOT_CHECKED

_UNSIGNED = {"extra_content": {"google": {"thought_signature": NOT_CHECKED}}}


def bypass_signature() -> dict[str, Any]:
    """Return the fields of a call without a signature."""
    return _UNSIGNED


def bypass_details(call_id: str) -> list[dict[str, Any]]:
    """Return the `reasoning_details` of a message whose first call has this id."""
    entry = {
        "type": "reasoning.encrypted",
        "data": NOT_CHECKED,
        "id": call_id,
        "format": "google-gemini-v1",
        "index": 0,
    }
    return [entry]
