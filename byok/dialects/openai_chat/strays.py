"""Chunks that are not chat completions: errors, and answers in another protocol.

Errors inside a stream without an `error` field, finish reasons that are failures, and
answers of servers that speak another protocol at this URL.
"""

from typing import Any

from byok.chat import Json
from byok.errors import UpstreamGarbled

# Finish reasons of answers that are not complete.
FAILED = frozenset(
    {
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "network_error",
        "insufficient_system_resource",  # DeepSeek
        "malformed_function_call",  # Gemini, and the next three
        "unexpected_tool_call",
        "too_many_tool_calls",
        "missing_thought_signature",
    }
)
_ANTHROPIC = frozenset(
    {"message", "message_start", "content_block_start", "content_block_delta"}
)


def is_error(chunk: Json) -> bool:
    """Recognise an error by the fields that a chunk has and lacks."""
    frame = chunk.get("base_resp")  # MiniMax has it in each answer
    if isinstance(frame, dict) and frame.get("status_code"):
        return True
    if chunk.get("choices") or chunk.get("usage"):
        return False
    if chunk.get("object") == "error" or chunk.get("detail") or chunk.get("errors"):
        return True
    words = (chunk.get("message"), chunk.get("msg"))
    return any(isinstance(word, str) and word for word in words)


def check_protocol(chunk: Any) -> None:
    """Check that the first chunk of an answer is not from another protocol.

    Raises:
        UpstreamGarbled: it is; the message names the protocol.
    """
    if name := _protocol_of(chunk):
        raise UpstreamGarbled(
            f"it answers in the format of {name}, not of Chat Completions.",
            code="upstream_protocol",
            hint="Set base_url to the address of its OpenAI-compatible API, which "
            "usually ends in /v1.",
        )


def _protocol_of(chunk: Any) -> str:
    if isinstance(chunk, list):  # Gemini, where no events were asked for
        chunk = chunk[0] if chunk else None
    if not isinstance(chunk, dict) or "choices" in chunk:
        return ""
    kind = chunk.get("type")
    kind = kind if isinstance(kind, str) else ""
    if kind in _ANTHROPIC:
        return "Anthropic's Messages API"
    if kind.startswith("response.") or chunk.get("object") == "response":
        return "OpenAI's Responses API"
    if "candidates" in chunk:
        return "Gemini's own API"
    if "done" in chunk and ("message" in chunk or "response" in chunk):
        return "Ollama's own API"
    return ""
