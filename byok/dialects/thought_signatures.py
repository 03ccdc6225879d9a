"""Gemini's thought signatures: which models want them, and what replaces a missing one.

Gemini 3 refuses conversations in which the first call of a step has no signature. Calls
of another model, or whose signature the client lost, get the value that Google
documents as not checked (Gemini API, Thought Signatures).
"""

import re

NOT_CHECKED = "skip_thought_signature_validator"
_ASKED = re.compile(r"gemini(?!-[12]\b)")


def wants_signatures(model: str) -> bool:
    """Tell whether a model refuses tool calls without a signature."""
    return bool(_ASKED.search(model.lower()))
