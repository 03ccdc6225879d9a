"""Gemini's signatures of tool calls, and the placeholder for missing ones.

Gemini 3 refuses conversations in which the first call of a message has no signature.
Calls of another model, or from before byok was started, get the value that Google
documents as not checked.
"""

import re
from typing import Any

_NOT_CHECKED = "skip_thought_signature_validator"
_UNSIGNED = {"extra_content": {"google": {"thought_signature": _NOT_CHECKED}}}
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def with_bypass_signature(model: str) -> dict[str, Any]:
    """Return the fields that a model needs in a call without a signature."""
    return _UNSIGNED if _ASKED.search(model.lower()) else {}
