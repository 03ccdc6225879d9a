"""OpenAI's Responses for clients: decoding bodies, writing answers.

byok stores no responses: it only caches them for a while, unless `store` is false
(`recent_answers.py`). References to others are refused.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    ProviderData,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
)
from byok.core.conversation_builder import make_result
from byok.core.errors import ByokError
from byok.core.events import FinishReason, Usage
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.core.wire.json_body import write_json
from byok.protocols.v1.block_reply import (
    BlockReply,
    Question,
    ReplyHead,
    forget,
    make_question,
)
from byok.protocols.v1.fields import (
    count,
    feature_refusal,
    flag,
    mapping,
    number,
    objects,
    openai_error,
    read_data_url,
    read_file_url,
    read_format,
    read_parts,
    response_error,
    text,
    write_source,
    wrong_field,
)
from byok.protocols.v1.recent_answers import input_name, list_items
from byok.protocols.v1.turns import (
    ToolList,
    Turns,
    join_namespace,
    read_choice,
    read_freeform,
    write_freeform,
)

_STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
_STATELESS = "Send the whole conversation in input, with store set to false."
_IGNORED = ("max_tool_calls", "top_logprobs", "context_management")
# Types of items.
_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_INCOMPLETE = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}
_NO_NAMESPACES: Mapping[str, tuple[str, str]] = {}


def decode_response(body: Json) -> Question:
    """Decode the body of a response.

    Raises:
        BadRequest: a field is invalid, or byok does not support it.
    """
    for name in _STATEFUL:
        if body.get(name):
            raise feature_refusal(
                f"byok stores no responses: {name} is refused", _STATELESS
            )
    tools = read_tools(body)
    choice = read_choice(body.get("tool_choice"), tools, _name_of)
    turns = Turns()
    turns.add_system(text(body, "instructions"))
    add_items(turns, body.get("input"))
    chat = replace(
        turns.request(tools),
        client_parallel_tools=flag(body, "parallel_tool_calls") is not False,
        sampling=Sampling(
            number(body, "temperature"),
            number(body, "top_p"),
            count(body, "max_output_tokens"),
            text(mapping(body, "reasoning"), "effort"),
        ),
        tool_choice=choice,
        json_answer=read_format(mapping(mapping(body, "text"), "format")),
        cache_key=text(body, "prompt_cache_key"),
    )
    is_private = flag(body, "store") is False
    reply = partial(
        ResponseReply,
        freeform=tools.freeform,
        namespaces=tools.namespaces,
        echoed=_echoed_fields(chat, body.get("tool_choice")),
        input_items=None if is_private else list_items(body.get("input")),
    )
    left_out = (*tools.left_out, *turns.left_out)
    return make_question(body, chat, reply, left_out, _IGNORED)


def read_tools(body: Json) -> ToolList:
    """Return the tools of a body; those that only the vendor can run are left out."""
    tools = ToolList()
    for row in objects(body, "tools"):
        if text(row, "type") == "namespace":
            for inner in objects(row, "tools"):
                _add_tool(tools, inner, text(row, "name"))
        else:
            _add_tool(tools, row)
    return tools


def _add_tool(tools: ToolList, row: Json, namespace: str = "") -> None:
    match text(row, "type"):
        case "function":
            name = tools.whole_name(namespace, text(row, "name"))
            tools.add(name, text(row, "description"), mapping(row, "parameters"))
        case "custom":
            tools.add_freeform(row, namespace)
        case kind:
            tools.leave_out(kind)


def _name_of(row: Json) -> str:
    return text(row, "name") or text(row, "type")


def _echoed_fields(chat: ChatRequest, choice: Any) -> dict[str, Any]:
    """Return the fields of the request that the response repeats, except long ones."""
    sampling = chat.sampling
    return {
        "max_output_tokens": sampling.max_tokens,
        "parallel_tool_calls": chat.client_parallel_tools,
        "reasoning": {"effort": sampling.effort or None, "summary": None},
        "temperature": sampling.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": choice if isinstance(choice, str) else "auto",
        "top_p": sampling.top_p,
    }


def add_items(turns: Turns, value: Any) -> None:
    """Add `input`: a string, or items.

    Raises:
        BadRequest: an item is invalid.
    """
    if isinstance(value, str):
        turns.add_user([TextPart(value)])
        return
    for item in objects({"input": value}, "input"):
        kind = text(item, "type") or "message"
        if kind == "message":
            content = read_parts(item, "content", _read_part)
            turns.add_message(text(item, "role"), content)
        elif kind == "reasoning":
            parts = [*objects(item, "summary"), *objects(item, "content")]
            thought = "\n\n".join(text(part, "text") for part in parts)
            data = read_encrypted(text(item, "encrypted_content"))
            turns.add_answer([ThinkingPart(thought, data)])
        elif kind in _CALLS:
            turns.add_answer([_read_call(kind, item)])
        elif kind in _RESULTS:
            turns.add_result(
                make_result(_call_id(item), read_parts(item, "output", _read_part))
            )
        elif kind == "item_reference":
            raise feature_refusal(
                "byok does not remember the item of an item_reference",
                "Send the items themselves, with store set to false.",
            )
        else:
            turns.left_out.append(f"the item {kind[:60]!r}")


def _read_part(part: Json) -> TextPart | ImagePart:
    match text(part, "type"):
        case "input_text" | "output_text" | "text":
            return TextPart(text(part, "text"))
        case "refusal":
            return TextPart(text(part, "refusal"))
        case "input_image" if not part.get("file_id"):
            return read_data_url(text(part, "image_url"))
        case "input_file" if text(part, "file_data"):
            return read_file_url(text(part, "file_data"), text(part, "filename"))
        case kind:
            raise feature_refusal(f"byok does not translate a part {kind[:60]!r}")


def _call_id(item: Json) -> str:
    call_id = text(item, "call_id") or text(item, "id")
    if not call_id:
        raise wrong_field("call_id", "a string")
    return call_id


def _read_call(kind: str, item: Json) -> ToolCall:
    call_id = _call_id(item)
    name = join_namespace(text(item, "namespace"), text(item, "name"))
    match kind:
        case "custom_tool_call":
            return ToolCall(call_id, name, write_freeform(text(item, "input")))
        case "local_shell_call":
            action = write_json(mapping(item, "action")).decode()
            return ToolCall(call_id, "local_shell", action)
        case _:
            return ToolCall(call_id, name, text(item, "arguments") or "{}")


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts; the input includes what was read from a cache."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


class ResponseReply(BlockReply):
    """A writer of a response.

    `echoed` are fields of the request that the response repeats. If `input_items` is
    not None, the client may refer to the response and to its items later.

    The events, their order and their fields are those of the API reference ("Streaming
    events"); `sequence_number` counts them. Tools and instructions are not repeated in
    the response: they may have megabytes, and it is sent three times.
    """

    def __init__(
        self,
        head: ReplyHead,
        *,
        freeform: Collection[str] = (),
        namespaces: Mapping[str, tuple[str, str]] = _NO_NAMESPACES,
        echoed: Json | None = None,
        input_items: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(head)
        self._id = f"resp_{head.id}"
        self._keep = forget if input_items is None else head.keep
        self._keep(input_name(self._id), input_items)
        self._freeform = freeform
        self._namespaces = namespaces
        self._echoed = echoed or {}
        self._number = -1  # of the last event
        self._output: list[Json] = []
        self._item = ""  # the id of the open item

    def _write_beginning(self) -> Iterator[Json]:
        empty = self._response("in_progress")
        yield self._event("response.created", response=empty)
        yield self._event("response.in_progress", response=empty)

    def _open_text(self) -> Iterator[Json]:
        yield self._begin_item(self._message("in_progress"))
        yield self._part("response.content_part.added", part=_text_part(""))

    def _write_text(self, text: str) -> Json:
        """Write a piece of text; one literal, because it is the most frequent event."""
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

    def _close_text(self, text: str) -> Iterator[Json]:
        sources = [
            {"type": "url_citation", **write_source(url, title)}
            for url, title in self.sources.items()
        ]
        part = {**_text_part(text), "annotations": sources}
        yield self._part("response.output_text.done", text=text, logprobs=[])
        yield self._part("response.content_part.done", part=part)
        yield self._end_item(self._message("completed", part))

    def _open_thinking(self) -> Iterator[Json]:
        yield self._begin_item(self._reasoning([]))

    def _write_thinking(self, text: str) -> Iterator[Json]:
        """Write a piece of the summary; the first one opens it."""
        if len(self._pieces) == 1:
            part = {"type": "summary_text", "text": ""}
            yield self._summary("response.reasoning_summary_part.added", part=part)
        yield self._summary("response.reasoning_summary_text.delta", delta=text)

    def _close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterator[Json]:
        summary: list[Json] = [{"type": "summary_text", "text": text}] if text else []
        for part in summary:
            yield self._summary("response.reasoning_summary_text.done", text=text)
            yield self._summary("response.reasoning_summary_part.done", part=part)
        yield self._end_item(self._reasoning(summary, provider_data))

    def _write_call(self, call: ToolCall) -> Iterator[Json]:
        kind, field, prefix = "function_call", "arguments", "fc"
        value = call.arguments
        if call.name in self._freeform:
            kind, field, prefix = "custom_tool_call", "input", "ctc"
            value = read_freeform(value)
        event = f"{kind}_{field}"
        base = {"call_id": call.id, "status": "completed", "name": call.name}
        if call.name in self._namespaces:
            base["namespace"], base["name"] = self._namespaces[call.name]
        base |= {"type": kind, "id": self._new_id(prefix)}
        yield self._begin_item({**base, field: "", "status": "in_progress"})
        position = {"item_id": self._item, "output_index": len(self._output)}
        yield self._event(f"response.{event}.delta", **position, delta=value)
        name = {"name": base["name"]} if field == "arguments" else {}
        end = {**position, **name, field: value}
        yield self._event(f"response.{event}.done", **end)
        yield self._end_item({**base, field: value})

    def _write_end(self) -> Iterator[Json]:
        self._keep(self._id, self._output)
        whole = self.whole()
        yield self._event(f"response.{whole['status']}", response=whole)

    def _write_failure(self, error: ByokError) -> Iterator[Json]:
        """Write two events, as OpenAI does: clients read either one or the other."""
        yield self._event("error", **openai_error(error))
        failed = {**self._response("failed"), "error": response_error(error)}
        yield self._event("response.failed", response=failed)

    def whole(self) -> dict[str, Any]:
        """Return the response."""
        reason = _INCOMPLETE.get(self.finish)
        if reason is None:
            return self._response("completed")
        details = {"reason": reason}
        return {**self._response("incomplete"), "incomplete_details": details}

    def _response(self, status: str) -> dict[str, Any]:
        usage = self.usage if status != "in_progress" else None
        return {
            "id": self._id,
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
            **self._echoed,
        }

    def _event(self, kind: str, **fields: Any) -> Json:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    def _part(self, kind: str, **fields: Any) -> Json:
        position = {"item_id": self._item, "output_index": len(self._output)}
        return self._event(kind, **position, content_index=0, **fields)

    def _summary(self, kind: str, **fields: Any) -> Json:
        position = {"item_id": self._item, "output_index": len(self._output)}
        return self._event(kind, **position, summary_index=0, **fields)

    def _new_id(self, prefix: str) -> str:
        self._item = f"{prefix}_{self.head.id}_{len(self._output)}"
        return self._item

    def _begin_item(self, item: Json) -> Json:
        index = len(self._output)
        return self._event("response.output_item.added", output_index=index, item=item)

    def _end_item(self, item: Json) -> Json:
        index = len(self._output)
        self._output.append(item)
        self._keep(item["id"], item)
        return self._event("response.output_item.done", output_index=index, item=item)

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
        is_new = not summary and provider_data is None
        item["id"] = self._new_id("rs") if is_new else self._item
        item["encrypted_content"] = provider_data and write_encrypted(provider_data)
        return item


def failure_events(error: ByokError, head: ReplyHead) -> list[Json]:
    """Return the last events of a stream that failed in an unknown state."""
    _created, _in_progress, *last = ResponseReply(head).fail(error)
    return last


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
