"""OpenAI Chat Completions: writing the request.

The order and the pairing of messages are the caller's work (`augment/history.py`);
here each message is only spelled. Names and ids that the API would refuse are
replaced by safe ones through a table that is injective within the request.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from byok.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Origin,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.openai_chat.signatures import with_bypass_signature
from byok.dialects.openai_chat.tool_results import move_pictures, result_text
from byok.dialects.quirks import Quirks
from byok.dialects.schemas.common import write_schema
from byok.wire.json_body import write_json

_SAFE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NAME_LENGTH = 64
_ID_LENGTH = 64  # of an id that stands for one which cannot be sent
_DIGEST = 8


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Write the body of `POST chat/completions`."""
    quirks = target.quirks
    names = _Table(_safe_name)
    ids = _Table(lambda text, again: _safe_id(text, again, quirks))
    body: dict[str, Any] = {"model": target.model}
    tools = [_tool(tool, names, quirks) for tool in chat.tools]
    body["messages"] = list(_messages(chat.messages, names, ids, target))
    body["stream"] = True
    if quirks.stream_options:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = tools
        if quirks.tool_choice:
            body["tool_choice"] = "auto"
        if quirks.parallel_tool_calls and not chat.client_parallel_tools:
            body["parallel_tool_calls"] = False
    sampling = chat.sampling
    if sampling.max_tokens is not None:
        body[quirks.output_cap] = sampling.max_tokens
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        body["top_p"] = sampling.top_p
    body.update(target.extra_body)
    path = "chat/completions"
    return UpstreamRequest(path, body, names.backwards(), origin_of(target))


def origin_of(target: Target) -> Origin:
    """Return what marks data of this upstream's model as its own."""
    return Origin("openai_chat", target.upstream, target.model)


class _Table:
    """Original to safe spelling; two originals never share one."""

    def __init__(self, spell: Any) -> None:
        self._spell = spell
        self._safe: dict[str, str] = {}
        self._used: set[str] = set()

    def __call__(self, original: str) -> str:
        if original not in self._safe:
            again, safe = 0, self._spell(original, 0)
            while safe in self._used:
                again += 1
                safe = self._spell(original, again)
            self._safe[original] = safe
            self._used.add(safe)
        return self._safe[original]

    def backwards(self) -> dict[str, str]:
        return {safe: original for original, safe in self._safe.items()}


def _safe_name(name: str, again: int) -> str:
    if not again and _SAFE_NAME.match(name):
        return name
    stem = _UNSAFE.sub("_", name).strip("_") or "tool"
    return f"{stem[: _NAME_LENGTH - _DIGEST - 1]}_{_digest(name, again)[:_DIGEST]}"


def _safe_id(text: str, again: int, quirks: Quirks) -> str:
    """Keep an id as it is wherever it may be: gateways hide signatures in theirs."""
    if not again and text and _fits(text, quirks) and _plain(text, quirks):
        return text
    return _digest(text, again)[: quirks.tool_id_length or _ID_LENGTH]


def _fits(text: str, quirks: Quirks) -> bool:
    length = quirks.tool_id_length
    if quirks.exact_tool_ids:
        return len(text) == length
    return not length or (len(text) <= length and text.isascii())


def _plain(text: str, quirks: Quirks) -> bool:
    if quirks.exact_tool_ids:
        return text.isascii() and text.isalnum()
    if quirks.plain_tool_ids:
        return not _UNSAFE.search(text)
    return text.isprintable()


def _digest(text: str, again: int) -> str:
    raw = f"{again}:{text}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()


def _tool(tool: ToolDefinition, names: _Table, quirks: Quirks) -> dict[str, Any]:
    schema = {**tool.parameters, "type": "object"}
    narrow, plain_keys = quirks.narrow_schemas, quirks.plain_keys
    return {
        "type": "function",
        "function": {
            "name": names(tool.name),
            "description": tool.description,
            "parameters": write_schema(
                write_json(schema), narrow=narrow, plain_keys=plain_keys
            ),
        },
    }


def _messages(
    messages: Iterable[Message], names: _Table, ids: _Table, target: Target
) -> Iterable[dict[str, Any]]:
    strict, previous = target.quirks.strict_roles, None
    for message in move_pictures(messages):
        if strict and message.role is Role.USER and previous is Role.TOOL:
            yield {"role": "assistant", "content": "Understood."}
        previous = message.role
        match message.role:
            case Role.TOOL:
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        yield {
                            "role": "tool",
                            "tool_call_id": ids(part.call_id),
                            "content": result_text(part),
                        }
            case Role.ASSISTANT:
                yield _assistant(message, names, ids, target)
            case Role.SYSTEM | Role.USER:
                yield {"role": message.role.value, "content": _content(message.parts)}


def _assistant(
    message: Message, names: _Table, ids: _Table, target: Target
) -> dict[str, Any]:
    quirks = target.quirks
    text = "".join(p.text for p in message.parts if isinstance(p, TextPart))
    calls = [
        {
            "id": ids(part.id),
            "type": "function",
            "function": {"name": names(part.name), "arguments": part.arguments},
            **_own_data(part, target),
        }
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    if not calls:
        return {"role": "assistant", "content": text}
    if quirks.signed_calls:
        calls[0] = {**with_bypass_signature(target.model), **calls[0]}
    empty = None if quirks.null_content else ""
    out = {"role": "assistant", "content": text or empty, "tool_calls": calls}
    thoughts = "".join(p.text for p in message.parts if isinstance(p, ThinkingPart))
    if quirks.empty_reasoning or (thoughts and quirks.wants_reasoning):
        out["reasoning_content"] = thoughts
    return out


def _own_data(call: ToolCall, target: Target) -> Json:
    """Return the fields that this very model sent with its call."""
    return call.provider_data.data_for(origin_of(target)) if call.provider_data else {}


def _content(parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """Write a plain string where there is no picture: every server reads that."""
    parts = list(parts)
    if not any(isinstance(part, ImagePart) for part in parts):
        return "\n\n".join(p.text for p in parts if isinstance(p, TextPart))
    return [written for part in parts if (written := _content_part(part))]


def _content_part(part: Part) -> dict[str, Any] | None:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(media_type=media_type, data=data):
            url = f"data:{media_type};base64,{data}"
            return {"type": "image_url", "image_url": {"url": url}}
        case _:
            return None
