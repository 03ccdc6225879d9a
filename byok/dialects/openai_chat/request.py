"""Chat Completions: encoding the request.

Order and pairing of messages come from `augment/history.py`; here each message is
encoded. Names and ids that the API would refuse get aliases (`safe_names.py`).
"""

from collections.abc import Iterable
from typing import Any

from byok.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.openai_chat.caching import add_caching
from byok.dialects.openai_chat.options import add_options
from byok.dialects.openai_chat.quirks import Quirks
from byok.dialects.openai_chat.replay import add_reasoning
from byok.dialects.openai_chat.signatures import bypass_signature
from byok.dialects.safe_names import Aliases, spell_name
from byok.dialects.schemas.common import write_schema
from byok.dialects.thought_signatures import wants_signatures
from byok.dialects.tool_results import move_images, result_text
from byok.wire.json_body import write_json


def encode_request(
    chat: ChatRequest, target: Target, quirks: Quirks
) -> UpstreamRequest:
    """Encode the body of `POST chat/completions`."""
    names, ids = Aliases(spell_name), Aliases(quirks.tool_ids.spell)
    body: dict[str, Any] = {"model": target.model}
    tools = [_tool(tool, names, quirks) for tool in chat.tools]
    body["messages"] = [*_messages(chat.messages, names, ids, target, quirks)]
    body["stream"] = True
    if quirks.stream_options:
        body["stream_options"] = {"include_usage": True}
    if tools:
        body["tools"] = tools
    notices = add_options(body, chat, target, quirks, names)
    if not chat.is_first_turn:
        notices = []  # they were shown in the first turn
    headers = add_caching(body, chat, target, quirks)
    body.update(target.extra_body)
    return UpstreamRequest(
        "chat/completions",
        body,
        headers,
        tool_names=names.originals,
        notices=tuple(notices),
    )


def _tool(tool: ToolDefinition, names: Aliases, quirks: Quirks) -> dict[str, Any]:
    schema = {**tool.parameters, "type": "object"}
    narrow, plain_keys = quirks.narrow_schemas, quirks.plain_keys
    return {
        "type": "function",
        "function": {
            "name": names.alias(tool.name),
            "description": tool.description,
            "parameters": write_schema(
                write_json(schema), narrow=narrow, plain_keys=plain_keys
            ),
        },
    }


def _messages(
    messages: Iterable[Message],
    names: Aliases,
    ids: Aliases,
    target: Target,
    quirks: Quirks,
) -> Iterable[dict[str, Any]]:
    for message in move_images(messages):
        match message.role:
            case Role.TOOL:
                for part in message.parts:
                    if isinstance(part, ToolResult):
                        yield {
                            "role": "tool",
                            "tool_call_id": ids.alias(part.call_id),
                            "content": result_text(part),
                        }
            case Role.ASSISTANT:
                yield _assistant(message, names, ids, target, quirks)
            case Role.SYSTEM | Role.USER:
                yield {"role": message.role.value, "content": _content(message.parts)}


def _assistant(
    message: Message, names: Aliases, ids: Aliases, target: Target, quirks: Quirks
) -> dict[str, Any]:
    text = "".join(p.text for p in message.parts if isinstance(p, TextPart))
    calls = [
        {
            "id": ids.alias(part.id),
            "type": "function",
            "function": {"name": names.alias(part.name), "arguments": part.arguments},
            **_own_data(part, target),
        }
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    out: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        if wants_signatures(target.model) and not quirks.details:
            calls[0] = {**bypass_signature(), **calls[0]}
        empty = None if quirks.null_content else ""
        out |= {"content": text or empty, "tool_calls": calls}
    add_reasoning(out, message, target, quirks)
    return out


def _own_data(call: ToolCall, target: Target) -> Json:
    """Return the signature that this very model sent with its call (Gemini)."""
    data = call.provider_data.data_for(target.origin) if call.provider_data else {}
    extra = data.get("extra_content")
    return {"extra_content": extra} if isinstance(extra, dict) else {}


def _content(parts: Iterable[Part]) -> str | list[dict[str, Any]]:
    """Return a plain string where there is no picture: all servers accept that."""
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
