"""Responses: write an answer, as events and as one object.

The events, their order and their fields are those of the API reference ("Streaming
events"); `sequence_number` counts them. Tools and instructions are not repeated in the
response: they may have megabytes, and it is sent three times.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from byok.chat import ChatRequest, Json, ProviderData, ToolCall
from byok.clients.block_reply import BlockReply, ReplyHead
from byok.clients.errors import response_error
from byok.clients.openai_fields import write_source
from byok.clients.responses.usage import write_usage
from byok.clients.tools import read_freeform
from byok.errors import ByokError
from byok.events import FinishReason
from byok.wire.encrypted_content import write_encrypted

_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}
_NO_NAMESPACES: Mapping[str, tuple[str, str]] = {}


class ResponseReply(BlockReply):
    """Writes a response; `asked` are the fields that it repeats of its request."""

    def __init__(
        self,
        chat: ChatRequest,
        head: ReplyHead,
        *,
        freeform: frozenset[str] = frozenset(),
        namespaces: Mapping[str, tuple[str, str]] = _NO_NAMESPACES,
        asked: Json | None = None,
    ) -> None:
        super().__init__(chat, head)
        self._freeform = freeform
        self._namespaces = namespaces
        self._asked = asked or {}
        self._number = -1
        self._output: list[Json] = []
        self._item = ""  # the id of the open item

    def write_beginning(self) -> Iterator[Json]:
        """Write the response as it begins."""
        begun = self._response("in_progress")
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)

    def open_text(self) -> Iterator[Json]:
        """Open a message with one part."""
        yield self._begin_item(self._message("in_progress"))
        yield self._part("response.content_part.added", part=_text_part(""))

    def write_text(self, text: str) -> Json:
        """Write a piece of the part; one literal, as it is the most frequent event."""
        self._number += 1
        return {
            "type": "response.output_text.delta",
            "sequence_number": self._number,
            "item_id": self._item,
            "output_index": len(self._output),
            "content_index": 0,
            "delta": text,
            "logprobs": [],
        }

    def close_text(self, text: str) -> Iterator[Json]:
        """Close the part and its message."""
        sources = [
            {"type": "url_citation", **write_source(url, title)}
            for url, title in self.sources.items()
        ]
        part = {**_text_part(text), "annotations": sources}
        yield self._part("response.output_text.done", text=text, logprobs=[])
        yield self._part("response.content_part.done", part=part)
        yield self._end_item(self._message("completed", part))

    def open_thinking(self) -> Iterator[Json]:
        """Open a reasoning item."""
        yield self._begin_item(self._reasoning([]))

    def write_thinking(self, text: str) -> Iterator[Json]:
        """Write a piece of the summary; the first one opens it."""
        if len(self._pieces) == 1:
            added = {"type": "summary_text", "text": ""}
            yield self._summary("response.reasoning_summary_part.added", part=added)
        yield self._summary("response.reasoning_summary_text.delta", delta=text)

    def close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterator[Json]:
        """Close the summary and its item."""
        summary: list[Json] = [{"type": "summary_text", "text": text}] if text else []
        for part in summary:
            yield self._summary("response.reasoning_summary_text.done", text=text)
            yield self._summary("response.reasoning_summary_part.done", part=part)
        yield self._end_item(self._reasoning(summary, provider_data))

    def write_call(self, call: ToolCall) -> Iterator[Json]:
        """Write a whole call."""
        base = {"call_id": call.id, "status": "completed", **self._spell(call.name)}
        if call.name in self._freeform:
            kind, field = "custom_tool_call", "input"
            event, given = "custom_tool_call_input", read_freeform(call.arguments)
            base |= {"type": kind, "id": self._new_id("ctc")}
        else:
            kind, field = "function_call", "arguments"
            event, given = "function_call_arguments", call.arguments
            base |= {"type": kind, "id": self._new_id("fc")}
        yield self._begin_item({**base, field: "", "status": "in_progress"})
        place = {"item_id": self._item, "output_index": len(self._output)}
        yield self._event(f"response.{event}.delta", **place, delta=given)
        named = {"name": base["name"]} if field == "arguments" else {}
        yield self._event(f"response.{event}.done", **place, **named, **{field: given})
        yield self._end_item({**base, field: given})

    def write_end(self) -> Iterator[Json]:
        """Write the whole response."""
        whole = self.whole()
        yield self._event(f"response.{whole['status']}", response=whole)

    def write_failure(self, error: ByokError) -> Iterator[Json]:
        """Write the response as it failed."""
        failed = {**self._response("failed"), "error": response_error(error)}
        yield self._event("response.failed", response=failed)

    def whole(self) -> dict[str, Any]:
        """Return the response."""
        reason = _INCOMPLETE.get(self.finish)
        if reason is None:
            return self._response("completed")
        details = {"reason": reason}
        return {**self._response("incomplete"), "incomplete_details": details}

    def _spell(self, name: str) -> dict[str, str]:
        """Return the name of a tool as the client gave it."""
        if name not in self._namespaces:
            return {"name": name}
        namespace, own = self._namespaces[name]
        return {"name": own, "namespace": namespace}

    def _response(self, status: str) -> dict[str, Any]:
        usage = self.usage if status != "in_progress" else None
        return {
            "id": f"resp_{self.head.id}",
            "object": "response",
            "created_at": self.head.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self.head.model,
            "output": [*self._output],
            "previous_response_id": None,
            "store": False,
            "tools": [],
            "truncation": "disabled",
            "usage": usage and write_usage(usage),
            **self._asked,
        }

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _part(self, kind: str, **fields: Any) -> Json:
        place = {"item_id": self._item, "output_index": len(self._output)}
        return self._event(kind, **place, content_index=0, **fields)

    def _summary(self, kind: str, **fields: Any) -> Json:
        place = {"item_id": self._item, "output_index": len(self._output)}
        return self._event(kind, **place, summary_index=0, **fields)

    def _new_id(self, prefix: str) -> str:
        self._item = f"{prefix}_{self.head.id}_{len(self._output)}"
        return self._item

    def _begin_item(self, item: Json) -> Json:
        place = len(self._output)
        return self._event("response.output_item.added", output_index=place, item=item)

    def _end_item(self, item: Json) -> Json:
        place = len(self._output)
        self._output.append(item)
        return self._event("response.output_item.done", output_index=place, item=item)

    def _message(self, status: str, *content: Json) -> Json:
        return {
            "id": self._item if content else self._new_id("msg"),
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [*content],
        }

    def _reasoning(
        self, summary: list[Json], provider_data: ProviderData | None = None
    ) -> Json:
        item: dict[str, Any] = {"type": "reasoning", "summary": summary}
        opening = not summary and provider_data is None
        item["id"] = self._new_id("rs") if opening else self._item
        item["encrypted_content"] = provider_data and write_encrypted(provider_data)
        return item


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
