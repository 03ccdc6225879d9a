"""The trial protocol: writing the request."""

from collections.abc import Iterator
from typing import Any

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.base import Target, UpstreamRequest


def encode_request(chat: ChatRequest, target: Target) -> UpstreamRequest:
    """Write the body of `POST chat`: options are nested, pictures are left out."""
    body: dict[str, Any] = {
        "model": target.model,
        "turns": [turn for m in chat.messages for turn in _turns(m)],
        "options": _options(chat, target),
    }
    if chat.tools:
        body["tools"] = [
            {"name": tool.name, "takes": dict(tool.parameters)} for tool in chat.tools
        ]
    shows = any(isinstance(p, ImagePart) for m in chat.messages for p in m.parts)
    return UpstreamRequest(
        "chat",
        body,
        headers={"X-Trial-Turns": str(len(body["turns"]))},
        notices=("This model sees no pictures: they were left out.",) if shows else (),
    )


def _options(chat: ChatRequest, target: Target) -> dict[str, Any]:
    options = {
        "window": target.facts.window or None,
        "most_words": chat.sampling.max_tokens,
        "temperature": chat.sampling.temperature,
    }
    return {name: value for name, value in options.items() if value is not None}


def _turns(message: Message) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        match part:
            case TextPart(text=text):
                yield {"who": message.role.value, "text": text}
            case ToolCall(id=call_id, name=name, arguments=arguments):
                call = {"id": call_id, "name": name}
                yield {"who": "assistant", "call": {**call, "arguments": arguments}}
            case ToolResult(call_id=call_id, content=content):
                yield {"who": "tool", "id": call_id, "text": content}
            case _:
                pass  # thoughts and pictures
