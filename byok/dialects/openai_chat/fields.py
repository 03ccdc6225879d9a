"""Fields of a chat.completion.chunk that vendors name in several ways."""

from typing import Any

DETAILS = "reasoning_details"
# The last is Copilot's.
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")


def only_delta(chunk: Any) -> dict[str, Any] | None:
    """Return the delta of a chunk that has nothing else, as nearly all have."""
    try:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        more = (
            choice.get("finish_reason")
            or choice.get("index")
            or choice.get("native_finish_reason")
            or choice.get("usage")
            or chunk.get("usage")
            or chunk.get("x_groq")
            or chunk.get("error")
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return None if more or not isinstance(delta, dict) else delta


def only_text(delta: dict[str, Any]) -> str:
    """Return the text of a delta that has nothing else, or ""."""
    text = delta.get("content")
    return text if len(delta) == 1 and isinstance(text, str) else ""


def is_whole_message(message: Any, delta: Any) -> bool:
    """Distinguish a whole answer from the text so far beside a delta (Perplexity)."""
    if not isinstance(message, dict):
        return False
    if not isinstance(delta, dict):
        return True
    return _says_something(message) and not _says_something(delta)


def _says_something(part: dict[str, Any]) -> bool:
    return any(value for name, value in part.items() if name != "role")


def reasoning(part: dict[str, Any]) -> tuple[str, str]:
    """Return the reasoning once, even if several fields repeat it, and its field."""
    for field in REASONING_FIELDS:
        value = part.get(field)
        if value and (text := value if isinstance(value, str) else texts(value)):
            return text, field
    return (texts(part[DETAILS]), DETAILS) if part.get(DETAILS) else ("", "")


def texts(value: Any) -> str:
    """Return a text, or the joined texts and summaries of a list of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    found = [
        string(item.get("text") or item.get("summary"))
        for item in value
        if isinstance(item, dict)
    ]
    return "".join(found)


def string(value: Any) -> str:
    """Return a string unchanged, "" for anything else."""
    return value if isinstance(value, str) else ""
