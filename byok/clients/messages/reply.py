"""Messages: write an answer, as events and as one object.

Anthropic gives reasoning only to clients that ask for it, and simple ones take the
first block for the answer. So a client that does not ask gets none.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.chat import NO_ORIGIN, ChatRequest, Json, ProviderData, ToolCall
from byok.clients.block_reply import BlockReply, ReplyHead
from byok.clients.errors import anthropic_error
from byok.errors import ByokError
from byok.events import FinishReason, Usage
from byok.wire.encrypted_content import write_encrypted
from byok.wire.json_body import parse_json

_STOPS = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
}
_UNSIGNED = ProviderData(NO_ORIGIN, {})  # clients drop reasoning without a signature


class MessageReply(BlockReply):
    """Writes a message; `shows_thinking`: the client asked for the reasoning."""

    def __init__(
        self, chat: ChatRequest, head: ReplyHead, *, shows_thinking: bool = False
    ) -> None:
        super().__init__(chat, head)
        self._shows_thinking = shows_thinking
        self._content: list[Json] = []

    def write_beginning(self) -> Iterator[Json]:
        """Write the message as it begins; its tokens are counted at the end."""
        usage = write_usage(self.usage or Usage())
        message = {**self._message(), "content": [], "stop_reason": None}
        yield {"type": "message_start", "message": {**message, "usage": usage}}

    def open_text(self) -> Iterator[Json]:
        """Open a block of text."""
        yield self._start({"type": "text", "text": ""})

    def write_text(self, text: str) -> Json:
        """Write a piece of text."""
        return self._delta({"type": "text_delta", "text": text})

    def close_text(self, text: str) -> Iterator[Json]:
        """Close a block of text."""
        yield self._stop({"type": "text", "text": text})

    def open_thinking(self) -> Iterator[Json]:
        """Open a block of reasoning."""
        if self._shows_thinking:
            yield self._start({"type": "thinking", "thinking": "", "signature": ""})

    def write_thinking(self, text: str) -> Iterator[Json]:
        """Write a piece of reasoning."""
        if self._shows_thinking:
            yield self._delta({"type": "thinking_delta", "thinking": text})

    def close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterator[Json]:
        """Close a block of reasoning; its signature holds the provider's data."""
        if self._shows_thinking:
            signature = write_encrypted(provider_data or _UNSIGNED)
            yield self._delta({"type": "signature_delta", "signature": signature})
            block = {"type": "thinking", "thinking": text, "signature": signature}
            yield self._stop(block)

    def write_call(self, call: ToolCall) -> Iterator[Json]:
        """Write a whole call."""
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield self._start(block)
        delta = {"type": "input_json_delta", "partial_json": call.arguments}
        yield self._delta(delta)
        arguments = parse_json(call.arguments.encode("utf-8", "surrogatepass"))
        yield self._stop({**block, "input": arguments})

    def write_end(self) -> Iterator[Json]:
        """Write the stop reason and the tokens."""
        delta = {"stop_reason": _STOPS[self.finish], "stop_sequence": None}
        usage = write_usage(self.usage or Usage())
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def write_failure(self, error: ByokError) -> Iterable[Json]:
        """Write the error."""
        return (anthropic_error(error, self.head.id),)

    def whole(self) -> dict[str, Any]:
        """Return the message."""
        return {
            **self._message(),
            "content": self._content,
            "stop_reason": _STOPS[self.finish],
            "usage": write_usage(self.usage or Usage()),
        }

    def _message(self) -> dict[str, Any]:
        return {
            "id": f"msg_{self.head.id}",
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "stop_sequence": None,
        }

    def _start(self, block: Json) -> Json:
        place = len(self._content)
        return {"type": "content_block_start", "index": place, "content_block": block}

    def _delta(self, delta: Json) -> Json:
        place = len(self._content)
        return {"type": "content_block_delta", "index": place, "delta": delta}

    def _stop(self, block: Json) -> Json:
        place = len(self._content)
        self._content.append(block)
        return {"type": "content_block_stop", "index": place}


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts; what was read from or written to a cache counts apart."""
    cached = usage.cache_read_tokens + usage.cache_creation_tokens
    return {
        "input_tokens": max(usage.input_tokens - cached, 0),
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }
