"""Why Gemini ended an answer, as data: finish reasons and reasons of a blocked prompt.

Source: the enums FinishReason and BlockedReason of the Gemini API reference, and of
google-genai 3.4.
"""

from byok.errors import UpstreamGarbled
from byok.events import FinishReason

FINISHED = {"STOP": FinishReason.STOP, "MAX_TOKENS": FinishReason.LENGTH}
NO_REASON = "FINISH_REASON_UNSPECIFIED"  # the default value of the enum

# Reasons of a filter, with what it found.
_FILTERED = {
    "SAFETY": "its safety filter",
    "RECITATION": "it repeated a protected text",
    "LANGUAGE": "a language that it does not support",
    "BLOCKLIST": "a forbidden word",
    "PROHIBITED_CONTENT": "prohibited content",
    "SPII": "personal data",
    "IMAGE_SAFETY": "the safety filter for images",
    "IMAGE_PROHIBITED_CONTENT": "prohibited content in an image",
    "IMAGE_RECITATION": "it repeated a protected image",
    "IMAGE_OTHER": "the filter for images",
    "MODEL_ARMOR": "Model Armor",
    "JAILBREAK": "its filter against jailbreaks",
}
# Reasons of answers that are not usable, with what went wrong.
_FAILED = {
    "MALFORMED_FUNCTION_CALL": "it wrote a tool call that cannot be read",
    "UNEXPECTED_TOOL_CALL": "it called a tool although none was offered",
    "TOO_MANY_TOOL_CALLS": "it called too many tools in a row",
    "MISSING_THOUGHT_SIGNATURE": "a thought signature is missing in the conversation",
    "MALFORMED_RESPONSE": "it wrote an answer that cannot be read",
}
# The same question would fail again.
_NOT_REPEATED = frozenset({"MISSING_THOUGHT_SIGNATURE"})
_ELSE = "Say it differently, or choose another model."


def filter_sentence(reason: str, *, said: str = "") -> str:
    """Return the sentence for an answer that a filter ended; "" for other reasons.

    `said` are the upstream's own words.
    """
    what = _FILTERED.get(reason)
    if not what:
        return ""
    return f"The model stopped because of {what} ({reason}). {said} {_ELSE}".replace(
        "  ", " "
    )


def blocked_sentence(reason: str, *, said: str = "") -> str:
    """Return the sentence for a prompt that was not answered at all."""
    what = _FILTERED.get(reason, "its filter")
    words = f"The model did not answer because of {what} ({reason}). {said} {_ELSE}"
    return words.replace("  ", " ")


def unknown_sentence(reason: str) -> str:
    """Return the sentence for a reason that says nothing."""
    return f"The model stopped early and names no reason that is known ({reason})."


def failure_of(reason: str, *, said: str = "") -> UpstreamGarbled | None:
    """Return the error for a reason of a failed answer; None for other reasons."""
    what = _FAILED.get(reason)
    if not what:
        return None
    told = f"{what} ({reason})" + (f": {said.rstrip('. ')}." if said else ".")
    return UpstreamGarbled(
        told,
        code="upstream_tool_failed",
        hint="Try again.",
        retryable=reason not in _NOT_REPEATED,
    )
