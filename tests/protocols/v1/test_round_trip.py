"""A conversation in each protocol is the same conversation for every dialect."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from byok.core.chat import (
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.protocols.v1.chat_completions import decode_completion
from byok.protocols.v1.messages import decode_message
from byok.protocols.v1.responses import decode_response
from tests.fakes.histories import histories

Body = dict[str, Any]


def completion(messages: tuple[Message, ...]) -> Body:
    """Write a conversation as Chat Completions."""
    return {"messages": [_said(message) for message in messages]}


def _said(message: Message) -> Body:
    texts, calls, thoughts = _sort(message)
    match message.role:
        case Role.TOOL:
            (result,) = message.parts
            assert isinstance(result, ToolResult)
            return {
                "role": "tool",
                "tool_call_id": result.call_id,
                "content": result.content,
            }
        case Role.ASSISTANT:
            written = [
                {"id": c.id, "function": {"name": c.name, "arguments": c.arguments}}
                for c in calls
            ]
            return {
                "role": "assistant",
                "reasoning_content": thoughts or None,
                "content": texts or None,
                "tool_calls": written or None,
            }
        case _:
            parts = [_part(part) for part in message.parts]
            return {"role": "user", "content": parts}


def _sort(message: Message) -> tuple[str, list[ToolCall], str]:
    texts = "".join(p.text for p in message.parts if isinstance(p, TextPart))
    thoughts = "".join(p.text for p in message.parts if isinstance(p, ThinkingPart))
    return texts, [p for p in message.parts if isinstance(p, ToolCall)], thoughts


def _part(part: Part) -> Body:
    if isinstance(part, ImagePart):
        url = f"data:{part.media_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    assert isinstance(part, TextPart)
    return {"type": "text", "text": part.text}


def response(messages: tuple[Message, ...]) -> Body:
    """Write a conversation as items of Responses."""
    return {"input": [item for message in messages for item in _items(message)]}


def _items(message: Message) -> Iterator[Body]:
    for part in message.parts:
        match part:
            case ToolCall():
                call = {"type": "function_call", "call_id": part.id}
                yield {**call, "name": part.name, "arguments": part.arguments}
            case ToolResult():
                result = {"type": "function_call_output", "call_id": part.call_id}
                yield {**result, "output": part.content}
            case ThinkingPart():
                summary = [{"type": "summary_text", "text": part.text}]
                yield {"type": "reasoning", "summary": summary}
            case ImagePart():
                picture = {"type": "input_image", **_part(part)["image_url"]}
                picture["image_url"] = picture.pop("url")
                yield {"role": "user", "content": [picture]}
            case TextPart():
                yield {"role": message.role.value, "content": part.text}


def message(messages: tuple[Message, ...]) -> Body:
    """Write a conversation as Messages; results of one turn are one message."""
    written: list[Body] = []
    for turn in messages:
        role = "assistant" if turn.role is Role.ASSISTANT else "user"
        blocks = [_block(part) for part in turn.parts]
        if written and written[-1]["role"] == role:
            written[-1]["content"] += blocks
        else:
            written.append({"role": role, "content": blocks})
    return {"messages": written}


def _block(part: Part) -> Body:
    match part:
        case ToolCall():
            given = json.loads(part.arguments)
            return {"type": "tool_use", "id": part.id, "name": "view", "input": given}
        case ToolResult():
            result = {"type": "tool_result", "tool_use_id": part.call_id}
            return {**result, "content": part.content}
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.text, "signature": ""}
        case ImagePart():
            source = {"media_type": part.media_type, "data": part.data}
            return {"type": "image", "source": {"type": "base64", **source}}
        case TextPart():
            return {"type": "text", "text": part.text}


def plain(messages: tuple[Message, ...]) -> list[Any]:
    """Return a conversation with the arguments of calls as objects."""
    return [
        (
            message.role,
            [
                (part.id, part.name, json.loads(part.arguments))
                if isinstance(part, ToolCall)
                else part
                for part in message.parts
            ],
        )
        for message in messages
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "decode"),
    [
        (completion, decode_completion),
        (response, decode_response),
        (message, decode_message),
    ],
)
@settings(max_examples=40)
@given(histories())
def test_round_trip_of_a_conversation_loses_nothing(
    write: Callable[..., Body],
    decode: Callable[[Body], Any],
    history: tuple[Message, ...],
) -> None:
    assert plain(decode(write(history)).chat.messages) == plain(history)
