"""Which protocol an answer is in, for servers that speak another one at a URL."""

from typing import Any

from byok.errors import UpstreamGarbled

CHAT_COMPLETIONS = "Chat Completions"
MESSAGES = "Anthropic's Messages API"
RESPONSES = "OpenAI's Responses API"
GEMINI = "Gemini's own API"
OLLAMA = "Ollama's own API"
_EVENTS = frozenset(
    {"message", "message_start", "content_block_start", "content_block_delta"}
)


def protocol_of(chunk: Any) -> str:
    """Return the name of the protocol that the first chunk is in, or ""."""
    if isinstance(chunk, list):  # Gemini, where no events were asked for
        chunk = chunk[0] if chunk else None
    if not isinstance(chunk, dict):
        return ""
    kind = chunk.get("type")
    kind = kind if isinstance(kind, str) else ""
    if "choices" in chunk:
        return CHAT_COMPLETIONS
    if kind in _EVENTS:
        return MESSAGES
    if kind.startswith("response.") or chunk.get("object") == "response":
        return RESPONSES
    if "candidates" in chunk:
        return GEMINI
    if "done" in chunk and ("message" in chunk or "response" in chunk):
        return OLLAMA
    return ""


def check_protocol(chunk: Any, own: str, hint: str = "") -> None:
    """Check that the first chunk of an answer is not from another protocol.

    Raises:
        UpstreamGarbled: it is; the message names the protocol.
    """
    name = protocol_of(chunk)
    if name and name != own:
        raise UpstreamGarbled(
            f"it answers in the format of {name}, not of {own}.",
            code="upstream_protocol",
            hint=hint or "Check base_url, or choose the other protocol with `dialect`.",
        )
