"""Chat Completions: write an answer, as chunks and as one object.

Reasoning stands in `reasoning_content`, as DeepSeek and many others do it. A block with
data of its provider comes once more in `reasoning_details`, as OpenRouter does it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from byok.chat import ChatRequest, Json, ProviderData, ToolCall
from byok.clients.block_reply import BlockReply, ReplyHead
from byok.clients.errors import openai_error
from byok.clients.openai_fields import write_source
from byok.clients.tools import read_freeform
from byok.errors import ByokError
from byok.events import Usage
from byok.wire.encrypted_content import write_encrypted
from byok.wire.sse_writer import DONE


class CompletionReply(BlockReply):
    """Writes a chat completion; `counts` asks for the usage in the last chunk."""

    def __init__(
        self,
        chat: ChatRequest,
        head: ReplyHead,
        *,
        freeform: frozenset[str] = frozenset(),
        counts: bool = False,
    ) -> None:
        super().__init__(chat, head)
        self._freeform = freeform
        self._counts = counts
        self._said: list[str] = []
        self._thought: list[str] = []
        self._details: list[Json] = []
        self._made: list[Json] = []

    def write_beginning(self) -> Iterable[Json]:
        """Write the role."""
        return (self._chunk({"role": "assistant", "content": ""}),)

    def open_text(self) -> Iterable[Json]:
        """Texts of one answer are one text."""
        return ()

    def write_text(self, text: str) -> Json:
        """Write a chunk with text."""
        return self._chunk({"content": text})

    def close_text(self, text: str) -> Iterable[Json]:
        """Keep the text."""
        self._said.append(text)
        return ()

    def open_thinking(self) -> Iterable[Json]:
        """Reasoning has no beginning."""
        return ()

    def write_thinking(self, text: str) -> Iterable[Json]:
        """Write a chunk with reasoning."""
        return (self._chunk({"reasoning_content": text}),)

    def close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterable[Json]:
        """Write the provider's data, if there is any."""
        self._thought.append(text)
        detail = {"type": "reasoning.encrypted", "index": len(self._details)}
        if provider_data is None:
            if text:
                self._details.append({**detail, "type": "reasoning.text", "text": text})
            return ()
        detail |= {"text": text, "data": write_encrypted(provider_data)}
        self._details.append(detail)
        return (self._chunk({"reasoning_details": [detail]}),)

    def write_call(self, call: ToolCall) -> Iterable[Json]:
        """Write a chunk with a whole call."""
        if call.name in self._freeform:
            given = {"name": call.name, "input": read_freeform(call.arguments)}
            made = {"id": call.id, "type": "custom", "custom": given}
        else:
            function = {"name": call.name, "arguments": call.arguments}
            made = {"id": call.id, "type": "function", "function": function}
        self._made.append(made)
        return (self._chunk({"tool_calls": [{"index": self.calls, **made}]}),)

    def write_end(self) -> Iterator[Json]:
        """Write the finish reason and the usage."""
        last = {"annotations": self._annotations()} if self.sources else {}
        yield self._chunk(last, self.finish.value)
        if self._counts and self.usage:
            yield {**self._chunk({}), "choices": [], "usage": write_usage(self.usage)}
        yield DONE

    def write_failure(self, error: ByokError) -> Iterable[Json]:
        """Write the error as one more event."""
        return (openai_error(error),)

    def whole(self) -> dict[str, Any]:
        """Return a chat.completion."""
        said = "".join(self._said)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": said or (None if self._made else ""),
            "refusal": None,
        }
        if thought := "".join(self._thought):
            message["reasoning_content"] = thought
        if any("data" in detail for detail in self._details):
            message["reasoning_details"] = self._details
        if self._made:
            message["tool_calls"] = self._made
        if self.sources:
            message["annotations"] = self._annotations()
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self.finish.value,
            "logprobs": None,
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": write_usage(self.usage) if self.usage else None,
        }

    def _head(self, kind: str) -> dict[str, Any]:
        head = self.head
        return {
            "id": f"chatcmpl-{head.id}",
            "object": kind,
            "created": head.created,
            "model": head.model,
        }

    def _chunk(self, delta: Json, finish: str | None = None) -> dict[str, Any]:
        chunk = self._head("chat.completion.chunk")
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk["choices"] = [choice]
        if self._counts:
            chunk["usage"] = None
        return chunk

    def _annotations(self) -> list[Json]:
        return [
            {"type": "url_citation", "url_citation": write_source(url, title)}
            for url, title in self.sources.items()
        ]


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
