"""Responses: read the items of `input` into a conversation."""

from typing import Any

from byok.chat import ImagePart, Json, TextPart, ThinkingPart, ToolCall, ToolResult
from byok.clients.fields import (
    feature_refusal,
    mapping,
    objects,
    text,
    wrong_field,
)
from byok.clients.images import read_data_url
from byok.clients.tools import join_namespace, write_freeform
from byok.clients.turns import Turns, make_result
from byok.wire.encrypted_content import read_encrypted
from byok.wire.json_body import write_json

_RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


def add_items(turns: Turns, given: Any) -> list[str]:
    """Add `input`: a string, or items; return what was left out.

    Raises:
        BadRequest: an item cannot be read.
    """
    if isinstance(given, str):
        turns.add_user([TextPart(given)])
        return []
    left_out: list[str] = []
    for item in objects({"input": given}, "input"):
        kind = text(item, "type") or "message"
        if kind == "message":
            _add_message(turns, item)
        elif kind == "reasoning":
            turns.add_answer([_read_reasoning(item)])
        elif kind in _CALLS:
            turns.add_answer([_read_call(kind, item)])
        elif kind in _RESULTS:
            turns.add_result(_read_result(item))
        elif kind == "item_reference":
            raise feature_refusal(
                "byok stores no items: item_reference is refused",
                "Send the items themselves.",
            )
        else:
            left_out.append(f"the item {kind[:60]!r}")
    return left_out


def _add_message(turns: Turns, item: Json) -> None:
    parts = _read_parts(item, "content")
    texts = [part for part in parts if isinstance(part, TextPart)]
    match text(item, "role"):
        case "system" | "developer":
            turns.add_system("\n\n".join(part.text for part in texts))
        case "user":
            turns.add_user(parts)
        case "assistant":
            turns.add_answer(texts)
        case role:
            raise wrong_field("role", f"one that byok knows, not {role[:60]!r}")


def _read_parts(item: Json, name: str) -> list[TextPart | ImagePart]:
    """Read a string, or parts with text and images."""
    given = item.get(name)
    if given is None or isinstance(given, str):
        return [TextPart(given or "")]
    return [_read_part(part) for part in objects(item, name)]


def _read_part(part: Json) -> TextPart | ImagePart:
    match text(part, "type"):
        case "input_text" | "output_text" | "text":
            return TextPart(text(part, "text"))
        case "refusal":
            return TextPart(text(part, "refusal"))
        case "input_image" if not part.get("file_id"):
            return read_data_url(text(part, "image_url"))
        case kind:
            raise feature_refusal(f"byok does not translate a part {kind[:60]!r}")


def _read_reasoning(item: Json) -> ThinkingPart:
    shown = [*objects(item, "summary"), *objects(item, "content")]
    said = "\n\n".join(text(part, "text") for part in shown)
    return ThinkingPart(said, read_encrypted(text(item, "encrypted_content")))


def _call_id(item: Json) -> str:
    found = text(item, "call_id") or text(item, "id")
    if not found:
        raise wrong_field("call_id", "a string")
    return found


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


def _read_result(item: Json) -> ToolResult:
    return make_result(_call_id(item), _read_parts(item, "output"))
