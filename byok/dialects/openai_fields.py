"""The fields of an OpenAI answer's chunk that vendors spell in several ways."""

from typing import Any

from byok.chat import Json


def only_delta(chunk: Any) -> dict[str, Any] | None:
    """Return the delta of a chunk that tells nothing else, as nearly all do."""
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
    """Return the text of a delta that holds nothing else, or ""."""
    text = delta.get("content")
    return text if len(delta) == 1 and isinstance(text, str) else ""


def reasoning(part: dict[str, Any]) -> str:
    """Read the reasoning once, whichever fields repeat it."""
    for field in ("reasoning_content", "reasoning"):
        if isinstance(text := part.get(field), str) and text:
            return text
    details = part.get("reasoning_details")
    return texts(details) if isinstance(details, list) else ""


def texts(value: Any) -> str:
    """Read a text, or a list of parts that hold text or a summary."""
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


def provider_fields(call: Json) -> Json | None:
    """Return the fields of a tool call that its provider wants back as they are."""
    extra = call.get("extra_content")  # Gemini's signature of its thoughts
    return {"extra_content": extra} if extra else None


def string(value: Any) -> str:
    """Return a string as it is, and "" for anything else."""
    return value if isinstance(value, str) else ""
