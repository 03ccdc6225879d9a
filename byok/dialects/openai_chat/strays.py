"""Chunks that are not chat completions: errors, and answers in another protocol.

Errors inside a stream without an `error` field, finish reasons that are failures, and
answers of servers that speak another protocol at this URL.
"""

from typing import Any

from byok.chat import Json
from byok.dialects import protocols

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
    protocols.check_protocol(
        chunk,
        protocols.CHAT_COMPLETIONS,
        "Set base_url to the address of its OpenAI-compatible API, which usually ends "
        "in /v1.",
    )
