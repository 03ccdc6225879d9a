"""A body of the Messages API: the tools in it, and text for its calls and pictures."""

from collections.abc import Iterator, Sequence
from typing import Any

from byok.chat import Json
from byok.dialects.anthropic.cache_points import FIELD, mark_prefix, without_point
from byok.dialects.anthropic.thinking import without_thinking
from byok.dialects.body_rows import BodyShape
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE, call_record
from byok.dialects.remedies import Body
from byok.wire.json_body import write_json

_ABOUT_TOOLS = ("tools", "tool_choice")
_SCHEMA = "input_schema"


def read_tools(body: Json) -> list[Body]:
    """Return the tools offered, without those of the API itself."""
    offered = (tool for tool in body.get("tools") or () if _SCHEMA in tool)
    return [{"description": "", **without_point(tool)} for tool in offered]


def offer_tools(body: Json, tools: Sequence[Json]) -> Body:
    """Return a body with these tools, and those of the API itself."""
    own = [tool for tool in body.get("tools") or () if _SCHEMA not in tool]
    kept = [
        {k: v for k, v in tool.items() if v or k != "description"} for tool in tools
    ]
    if not own and not kept:
        return {key: value for key, value in body.items() if key not in _ABOUT_TOOLS}
    body = {**body, "tools": [*kept, *own]}
    return mark_prefix(body) if FIELD in body else body


def is_first_turn(body: Json) -> bool:
    """Tell whether nothing of the assistant is in the history."""
    return all(message["role"] != "assistant" for message in _messages(body))


def called_tools(body: Json) -> set[str]:
    """Return the names of the tools that were called in the history."""
    return {block["name"] for block in _blocks(body) if block["type"] == "tool_use"}


def has_calls(body: Json) -> bool:
    """Tell whether the history has tool calls or results."""
    kinds = ("tool_use", "tool_result")
    return any(block["type"] in kinds for block in _blocks(body))


def calls_as_text(body: Json) -> Body:
    """Move tool calls and results into the user's messages, marked as records.

    Thinking blocks go, too: next to other blocks than their own they are refused.
    """
    if not has_calls(body):
        return dict(body)
    calls = {b["id"]: b for b in _blocks(body) if b["type"] == "tool_use"}
    messages: list[dict[str, Any]] = []
    for message in without_thinking(_messages(body)):
        content = [new for b in message["content"] for new in _record_blocks(b, calls)]
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1]["content"] += content
        elif content:
            messages.append({"role": message["role"], "content": content})
    about = {"type": "text", "text": ABOUT_RECORDS}
    system = [*map(without_point, body.get("system") or ()), about]
    body = {**body, "system": system, "messages": messages}
    return mark_prefix(body) if FIELD in body else body


def has_pictures(body: Json) -> bool:
    """Tell whether any message or result has a picture."""
    return any(map(_has_picture, _messages(body)))


def shows_picture(body: Json) -> bool:
    """Tell whether the newest turn has a picture."""
    for message in reversed(_messages(body)):
        if message["role"] == "assistant":
            break
        if _has_picture(message):
            return True
    return False


def pictures_as_text(body: Json) -> Body:
    """Put a sentence in the place of each picture."""
    messages = [
        {**message, "content": [*map(_without_picture, message["content"])]}
        for message in _messages(body)
    ]
    return {**body, "messages": messages} if messages else dict(body)


SHAPE = BodyShape(
    tools=read_tools,
    offer=offer_tools,
    called=called_tools,
    begins=is_first_turn,
    has_calls=has_calls,
    calls_as_text=calls_as_text,
    has_pictures=has_pictures,
    shows=shows_picture,
    pictures_as_text=pictures_as_text,
    parameters=("tool_choice",),
    schema=_SCHEMA,
)


def _messages(body: Json) -> list[Json]:
    return list(body.get("messages") or ())


def _blocks(body: Json) -> Iterator[Json]:
    return (block for message in _messages(body) for block in message["content"])


def _record_blocks(block: Json, calls: Json) -> Iterator[dict[str, Any]]:
    """Yield the blocks in the place of one: none for a call, a record for a result."""
    if block["type"] == "tool_result":
        call, inner = calls.get(block["tool_use_id"], {}), _inner(block)
        name, arguments = call.get("name", ""), call.get("input", {})
        result = "\n".join(b["text"] for b in inner if b["type"] == "text")
        text = call_record(name, write_json(arguments).decode(), result)
        yield {"type": "text", "text": text}
        yield from (dict(b) for b in inner if b["type"] == "image")
    elif block["type"] != "tool_use":
        yield dict(block)


def _inner(result: Json) -> list[Json]:
    content = result.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


def _has_picture(message: Json) -> bool:
    found = (
        inner["type"] == "image"
        for block in message["content"]
        for inner in (_inner(block) if block["type"] == "tool_result" else (block,))
    )
    return any(found)


def _without_picture(block: Json) -> dict[str, Any]:
    if block["type"] == "image":
        return {"type": "text", "text": NO_PICTURE}
    content = block.get("content")
    if isinstance(content, list):
        return {**block, "content": [*map(_without_picture, content)]}
    return dict(block)
