"""Requests to Anthropic's Messages API, and pieces of its answers."""

import json
from collections.abc import Iterable
from typing import Any

from byok.core.chat import (
    ChatRequest,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.anthropic.dialect import AnthropicMessages
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts

HERE = Origin("anthropic", "box", "m")
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "EqQB"}
CALL = ToolCall("toolu_1", "view", '{"path": "a"}')
ADAPTIVE = ModelFacts("m", thinking=True, adaptive_thinking=True)
BUDGET = ModelFacts("m", thinking=True, adaptive_thinking=False, max_output=64_000)


def said(role: Role, *parts: Part | str) -> Message:
    return Message(role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts))


def user(*parts: Part | str) -> Message:
    return said(Role.USER, *parts)


def assistant(*parts: Part | str) -> Message:
    return said(Role.ASSISTANT, *parts)


def result(call: ToolCall = CALL, content: str = "ok", **fields: Any) -> Message:
    return said(Role.TOOL, ToolResult(call.id, call.name, content, **fields))


def thought(block: Any = THOUGHT, origin: Origin = HERE) -> ThinkingPart:
    """The reasoning of a model, with the block that came."""
    return ThinkingPart("Hm.", ProviderData(origin, {"block": block}))


def encode(
    *messages: Message,
    facts: ModelFacts = UNKNOWN_MODEL,
    cache: bool = False,
    long_cache: bool = False,
    extra: dict[str, Any] | None = None,
    **fields: Any,
) -> UpstreamRequest:
    """Encode a conversation; more than one call at a time is accepted."""
    target = Target("m", extra or {}, facts, HERE, cache, long_cache)
    fields = {"client_parallel_tools": True, **fields}
    return write_request(AnthropicMessages(), ChatRequest(messages, **fields), target)[
        1
    ]


def sse(event: dict[str, Any]) -> bytes:
    """Write one event as the API does, with its name."""
    name, data = event["type"], json.dumps(event)
    return f"event: {name}\ndata: {data}\n\n".encode()


def start(**usage: Any) -> bytes:
    """Begin an answer."""
    usage = usage or {"input_tokens": 10, "output_tokens": 1}
    return sse({"type": "message_start", "message": {"content": [], "usage": usage}})


def block(index: int, begun: dict[str, Any], deltas: Iterable[Any] = ()) -> bytes:
    """Write a whole block: its start, its deltas and its end."""
    at = {"index": index}
    events = [
        {"type": "content_block_start", **at, "content_block": begun},
        *({"type": "content_block_delta", **at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", **at},
    ]
    return b"".join(map(sse, events))


def text_block(index: int, *texts: str) -> bytes:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return block(index, {"type": "text", "text": ""}, deltas)


def thinking_block(index: int, *texts: str, signature: str = "c2ln") -> bytes:
    deltas: list[Any] = [{"type": "thinking_delta", "thinking": t} for t in texts]
    deltas += [{"type": "signature_delta", "signature": signature}] if signature else []
    begun = {"type": "thinking", "thinking": "", "signature": ""}
    return block(index, begun, deltas)


def call_block(index: int, name: str, *pieces: str, call_id: str = "toolu_1") -> bytes:
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in ("", *pieces)]
    begun = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return block(index, begun, deltas)


def end(reason: str = "end_turn", *, usage: Any = None, **fields: Any) -> bytes:
    """End an answer."""
    delta = {"stop_reason": reason, "stop_sequence": None, **fields}
    usage = usage or {"output_tokens": 5}
    last = {"type": "message_delta", "delta": delta, "usage": usage}
    return sse(last) + sse({"type": "message_stop"})


def answer(*texts: str) -> bytes:
    """Write a whole answer of one text."""
    return start() + text_block(0, *texts) + end()
