"""Chat Completions: read the messages of a body into a conversation."""

from collections.abc import Iterator

from byok.chat import (
    ImagePart,
    Json,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
)
from byok.clients.fields import feature_refusal, mapping, objects, text, wrong_field
from byok.clients.images import read_data_url
from byok.clients.tools import write_freeform
from byok.clients.turns import Turns, make_result
from byok.wire.encrypted_content import read_encrypted

_TEXTS = {"text": "text", "refusal": "refusal"}


def add_message(turns: Turns, message: Json) -> None:
    """Add one message.

    Raises:
        BadRequest: it cannot be read.
    """
    match text(message, "role"):
        case "system" | "developer":
            turns.add_system(_join_texts(message))
        case "user":
            turns.add_user(read_content(message))
        case "assistant":
            turns.add_answer(_read_answer(message))
        case "tool":
            turns.add_result(_read_result(message))
        case role:
            raise wrong_field("role", f"one that byok knows, not {role[:60]!r}")


def read_content(message: Json) -> list[TextPart | ImagePart]:
    """Read `content`: a string, or parts with text and images."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [TextPart(content or "")]
    return [_read_part(part) for part in objects(message, "content")]


def _read_part(part: Json) -> TextPart | ImagePart:
    match text(part, "type"):
        case "text" | "refusal" as kind:
            return TextPart(text(part, _TEXTS[kind]))
        case "image_url":
            return read_data_url(text(mapping(part, "image_url"), "url"))
        case kind:
            raise feature_refusal(f"byok does not translate a part {kind[:60]!r}")


def _join_texts(message: Json) -> str:
    parts = read_content(message)
    return "\n\n".join(p.text for p in parts if isinstance(p, TextPart))


def _read_answer(message: Json) -> Iterator[TextPart | ThinkingPart | ToolCall]:
    """Read an answer: reasoning, text and calls, in this order."""
    yield from _read_thinking(message)
    if said := _join_texts(message):
        yield TextPart(said)
    elif refused := text(message, "refusal"):
        yield TextPart(refused)
    for row in objects(message, "tool_calls"):
        if not (call_id := text(row, "id")):
            raise wrong_field("the id of a tool call", "a string")
        if text(row, "type") == "custom":
            inner = mapping(row, "custom")
            arguments = write_freeform(text(inner, "input"))
        else:
            inner = mapping(row, "function")
            arguments = text(inner, "arguments") or "{}"
        yield ToolCall(call_id, text(inner, "name"), arguments)


def _read_thinking(message: Json) -> Iterator[ThinkingPart]:
    """Read the reasoning: in the blocks that byok gave, else as one text."""
    blocks = message.get("reasoning_details")
    if isinstance(blocks, list) and blocks:
        for block in objects(message, "reasoning_details"):
            data = read_encrypted(text(block, "data"))
            yield ThinkingPart(text(block, "text"), data)
        return
    name = "reasoning_content" if message.get("reasoning_content") else "reasoning"
    if isinstance(said := message.get(name), str) and said:
        yield ThinkingPart(said)


def _read_result(message: Json) -> ToolResult:
    parts = read_content(message)
    return make_result(text(message, "tool_call_id"), parts)
