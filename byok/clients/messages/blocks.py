"""Messages: read the blocks of a body into a conversation."""

from byok.chat import ImagePart, Json, TextPart, ThinkingPart, ToolCall, ToolResult
from byok.clients.fields import (
    feature_refusal,
    flag,
    mapping,
    objects,
    text,
    wrong_field,
)
from byok.clients.images import read_data_url, read_image
from byok.clients.turns import Turns, make_result
from byok.wire.encrypted_content import read_encrypted
from byok.wire.json_body import write_json


def read_system(body: Json) -> str:
    """Read `system`: a string, or blocks of text."""
    blocks = _blocks(body, "system")
    return "\n\n".join(text(block, "text") for block in blocks)


def add_message(turns: Turns, message: Json) -> list[str]:
    """Add one message; return what was left out.

    Raises:
        BadRequest: it cannot be read.
    """
    blocks = _blocks(message, "content")
    match text(message, "role"):
        case "user":
            _add_user(turns, blocks)
            return []
        case "assistant":
            return _add_answer(turns, blocks)
        case "system":
            turns.add_system("\n\n".join(text(block, "text") for block in blocks))
            return []
        case role:
            raise wrong_field("role", f"user or assistant, not {role[:60]!r}")


def _blocks(body: Json, name: str) -> list[Json]:
    """Read blocks; a string is one block of text."""
    if isinstance(said := body.get(name), str):
        return [{"type": "text", "text": said}]
    return [*objects(body, name)]


def _add_user(turns: Turns, blocks: list[Json]) -> None:
    """Add a message of the user: results of tools, then text and images."""
    said: list[TextPart | ImagePart] = []
    for block in blocks:
        if text(block, "type") == "tool_result":
            turns.add_result(_read_result(block))
        else:
            said.append(_read_part(block))
    turns.add_user(said)


def _read_part(block: Json) -> TextPart | ImagePart:
    match text(block, "type"):
        case "text":
            return TextPart(text(block, "text"))
        case "image":
            return _read_image(mapping(block, "source"))
        case "document" if text(mapping(block, "source"), "type") == "text":
            data = text(mapping(block, "source"), "data")
            return TextPart("\n".join(filter(None, (text(block, "title"), data))))
        case "search_result":
            found = [text(block, "title"), text(block, "source")]
            found += [text(part, "text") for part in objects(block, "content")]
            return TextPart("\n".join(filter(None, found)))
        case "tool_reference":
            return TextPart(text(block, "tool_name"))
        case kind:
            raise feature_refusal(f"byok does not translate a block {kind[:60]!r}")


def _read_image(source: Json) -> ImagePart:
    match text(source, "type"):
        case "base64":
            return read_image(text(source, "media_type"), text(source, "data"))
        case "url":
            return read_data_url(text(source, "url"))
        case kind:
            raise feature_refusal(f"byok does not translate a source {kind[:60]!r}")


def _read_result(block: Json) -> ToolResult:
    parts = [_read_part(part) for part in _blocks(block, "content")]
    failed = flag(block, "is_error") is True
    return make_result(text(block, "tool_use_id"), parts, is_error=failed)


def _add_answer(turns: Turns, blocks: list[Json]) -> list[str]:
    """Add blocks of the model; those of tools that ran at Anthropic are left out."""
    said: list[TextPart | ThinkingPart | ToolCall] = []
    left_out: list[str] = []
    for block in blocks:
        match text(block, "type"):
            case "text":
                said.append(TextPart(text(block, "text")))
            case "thinking":
                data = read_encrypted(text(block, "signature"))
                said.append(ThinkingPart(text(block, "thinking"), data))
            case "redacted_thinking":
                said.append(ThinkingPart("", read_encrypted(text(block, "data"))))
            case "tool_use":
                said.append(_read_call(block))
            case kind:
                left_out.append(f"the block {kind[:60]!r}")
    turns.add_answer(said)
    return left_out


def _read_call(block: Json) -> ToolCall:
    if not (call_id := text(block, "id")):
        raise wrong_field("the id of a tool_use", "a string")
    arguments = write_json(mapping(block, "input")).decode()
    return ToolCall(call_id, text(block, "name"), arguments)
