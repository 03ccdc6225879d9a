"""The demo upstream for OpenAI clients: decodes requests, encodes events."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from byok.augment.body import first_text, mapping, objects, text, value
from byok.chat import ChatRequest, Json, Message, Role, TextPart, ToolDefinition
from byok.chat import ToolResult as Result
from byok.errors import BadRequest
from byok.events import Finish, StreamEvent, TextDelta, ToolCallDelta, Usage
from byok.wire.json_body import parse_json, write_json

_ID = "chatcmpl-demo"
Batches = AsyncIterator[list[StreamEvent]]


def read_body(content: bytes) -> Json:
    """Decode a request.

    Raises:
        BadRequest: it is not an object with messages.
    """
    body = parse_json(content)
    if not isinstance(body, dict) or not objects(body, "messages"):
        raise BadRequest("A chat needs messages.", code="bad_field", status=400)
    return body


def chat_of(body: Json) -> ChatRequest:
    """Return what the demo needs: the last message, and the names of the tools."""
    last = objects(body, "messages")[-1]
    said = value(last, "content")
    texts = [said] if isinstance(said, str) else [text(p, "text") for p in _parts(last)]
    names = [first_text(mapping(t, "function"), "name") for t in objects(body, "tools")]
    tools = tuple(ToolDefinition(name, "", {}) for name in names if name)
    if first_text(last, "role") == Role.TOOL:
        message = Message(Role.TOOL, (Result("", "", "\n".join(texts)),))
    else:
        message = Message(Role.USER, tuple(map(TextPart, texts)))
    return ChatRequest((message,), tools=tools)


def _parts(message: Json) -> list[dict[str, Any]]:
    return [part for part in objects(message, "content") if text(part, "text")]


async def whole(batches: Batches, body: Json) -> AsyncIterator[bytes]:
    """Encode the answer as one document."""
    said, call, usage, finish = "", {"name": "", "arguments": ""}, Usage(), ""
    async for batch in batches:
        for event in batch:
            match event:
                case TextDelta(text=word):
                    said += word
                case ToolCallDelta():
                    call["name"] += event.name
                    call["arguments"] += event.arguments
                case Usage():
                    usage = event
                case Finish():
                    finish = event.reason.value
                case _:
                    pass  # the demo makes no other
    message: dict[str, Any] = {"role": "assistant", "content": said}
    if call["name"]:
        message["tool_calls"] = [
            {"id": "call_demo", "type": "function", "function": call}
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = _head(body, "chat.completion")
    yield write_json({**head, "choices": [choice], "usage": _usage(usage)})


async def stream_events(batches: Batches, body: Json) -> AsyncIterator[bytes]:
    """Encode the answer as server-sent events."""
    head = _head(body, "chat.completion.chunk")
    counts = mapping(body, "stream_options").get("include_usage") is True
    async for batch in batches:
        for event in batch:
            if isinstance(event, Usage):
                if counts:
                    yield _event({**head, "choices": [], "usage": _usage(event)})
                continue
            for choice in _choices(event):
                yield _event({**head, "choices": [{"index": 0, **choice}]})
    yield b"data: [DONE]\n\n"


def _choices(event: StreamEvent) -> Iterator[dict[str, Any]]:
    match event:
        case TextDelta(text=word):
            delta: dict[str, Any] = {"role": "assistant", "content": word}
            yield {"delta": delta, "finish_reason": None}
        case ToolCallDelta():
            call: dict[str, Any] = {
                "index": 0,
                "function": {"arguments": event.arguments},
            }
            if event.name:
                call |= {"id": event.id, "type": "function"}
                call["function"]["name"] = event.name
            yield {"delta": {"tool_calls": [call]}, "finish_reason": None}
        case Finish():
            yield {"delta": {}, "finish_reason": event.reason.value}
        case _:
            pass  # the demo makes no other


def _head(body: Json, kind: str) -> dict[str, Any]:
    return {"id": _ID, "object": kind, "created": 0, "model": text(body, "model")}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _event(value: Json) -> bytes:
    return b"data: " + write_json(value) + b"\n\n"
