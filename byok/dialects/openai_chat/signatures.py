"""Gemini signs its tool calls; what stands for a signature that nobody knows.

Since version 3 it refuses a conversation in which the first call of a message has none.
A call of another model, or of a time before byok was started, gets the value for which
Google's documentation says that it is not checked.
"""

import re
from typing import Any

_NOT_CHECKED = "skip_thought_signature_validator"
_UNSIGNED = {"extra_content": {"google": {"thought_signature": _NOT_CHECKED}}}
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def with_bypass_signature(model: str) -> dict[str, Any]:
    """Return the fields of a tool call without a signature, as a model wants them."""
    return _UNSIGNED if _ASKED.search(model.lower()) else {}
