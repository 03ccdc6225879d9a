"""Chunks of Gemini's answer: the common ones quickly, and those that are malformed."""

from typing import Any

from byok.chat import Json
from byok.errors import UpstreamGarbled, UpstreamNotJson
from byok.wire.json_body import parse_json

_DONE = b"[DONE]"  # Google sends none, but some gateways do


def only_text(chunk: Any) -> str:
    """Return the text of a chunk that has nothing else, as nearly all have, or ""."""
    try:
        (candidate,) = chunk["candidates"]
        (part,) = candidate["content"]["parts"]
        text = part["text"]
        more = (
            len(part) > 1
            or len(candidate) > 2
            or (len(candidate) > 1 and candidate["index"])
            or "error" in chunk
        )
    except (KeyError, TypeError, ValueError):
        return ""
    return "" if more or not isinstance(text, str) else text


def check_protocol(chunk: Json) -> None:
    """Check that the first chunk is not from an OpenAI-compatible server."""
    if "choices" in chunk and "candidates" not in chunk:
        raise UpstreamGarbled(
            "it answers in the format of Chat Completions, not of Gemini's own API.",
            code="upstream_protocol",
            hint='Set dialect = "openai_chat" for this upstream.',
        )


def read_lines(data: bytes, error: Exception) -> list[Any]:
    """Decode an event of several documents: the blank lines between are missing."""
    lines = [line for line in data.split(b"\n") if line.strip() not in (b"", _DONE)]
    try:
        found = [parse_json(line, keep_halves=True) for line in lines]
    except (ValueError, RecursionError):
        found = []
    if lines and (len(lines) < 2 or not found):
        raise UpstreamNotJson("a part of its answer is not JSON.") from error
    return found


def read_error_body(data: bytes) -> Any:
    """Return an error event as JSON, or as text where it is none."""
    try:
        return parse_json(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")
