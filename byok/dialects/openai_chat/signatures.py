"""Gemini's signatures of tool calls, and the placeholders for missing ones.

Gemini 3 refuses conversations in which the first call of a message has no signature.
Calls of another model, or from before byok was started, get the value that Google
documents as not checked: beside the call, or as an entry of `reasoning_details` where a
router passes signatures on in these.
"""

import re
from typing import Any

_NOT_CHECKED = "skip_thought_signature_validator"
_UNSIGNED = {"extra_content": {"google": {"thought_signature": _NOT_CHECKED}}}
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses calls without a signature, on any host."""
    return _ASKED.search(model.lower()) is not None


def bypass_signature() -> dict[str, Any]:
    """Return the fields of a call without a signature."""
    return _UNSIGNED


def bypass_details(call_id: str) -> list[dict[str, Any]]:
    """Return the `reasoning_details` of a message whose first call has this id."""
    entry = {
        "type": "reasoning.encrypted",
        "data": _NOT_CHECKED,
        "id": call_id,
        "format": "google-gemini-v1",
        "index": 0,
    }
    return [entry]
