"""A body of Responses: the tools in it, and text for its calls and pictures."""

from collections.abc import Iterator, Sequence
from typing import Any

from byok.chat import Json
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE, call_record
from byok.dialects.remedies import Body

_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_CALL, _RESULT = "function_call", "function_call_output"


def read_tools(body: Json) -> list[Body]:
    """Return the functions offered in a body."""
    tools = body.get("tools") or ()
    return [tool for tool in tools if tool.get("type") == "function"]


def offer_tools(body: Json, functions: Sequence[Json]) -> Body:
    """Return a body with these functions; without any tool, their fields go too."""
    others = [t for t in body.get("tools") or () if t.get("type") != "function"]
    if functions or others:
        return {**body, "tools": [*functions, *others]}
    return {key: value for key, value in body.items() if key not in _ABOUT_TOOLS}


def read_items(body: Json) -> list[Json]:
    """Return the items of the input; the user may have put a text in their place."""
    items = body.get("input")
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def called_tools(body: Json) -> set[str]:
    """Return the names of the functions that were called in the history."""
    return {item["name"] for item in read_items(body) if item.get("type") == _CALL}


def is_first_turn(body: Json) -> bool:
    """Tell whether nothing of the assistant is in the history."""
    return not any(map(_is_assistants, read_items(body)))


def has_calls(body: Json) -> bool:
    """Tell whether the history has tool calls or results."""
    return any(item.get("type") in (_CALL, _RESULT) for item in read_items(body))


def calls_as_text(body: Json) -> Body:
    """Move tool calls and results into the user's messages, marked as records.

    In the assistant's messages they would be an example for the model to imitate.
    """
    if not has_calls(body):
        return dict(body)
    calls = {i["call_id"]: i for i in read_items(body) if i.get("type") == _CALL}
    items: list[Json] = []
    for item in without_reasoning(body)["input"]:
        if item.get("type") == _RESULT:
            items += _record_items(calls.get(item["call_id"], {}), item["output"])
        elif item.get("type") != _CALL:
            items.append(item)
    said = "\n\n".join(filter(None, (body.get("instructions"), ABOUT_RECORDS)))
    return {**body, "instructions": said, "input": items}


def without_reasoning(body: Json, last: int | None = None) -> Body:
    """Remove the reasoning items, those up to the place `last` or all."""
    items = read_items(body)
    last = len(items) if last is None else last
    kept = [
        item
        for place, item in enumerate(items)
        if place > last or item.get("type") != "reasoning"
    ]
    return {**body, "input": kept} if items else dict(body)


def instructions_as_item(body: Json) -> Body:
    """Move the system prompt to the beginning of the input."""
    rest = {key: value for key, value in body.items() if key != "instructions"}
    if len(rest) == len(body):
        return rest
    system = {"type": "message", "role": "system", "content": body["instructions"]}
    return {**rest, "input": [system, *read_items(body)]}


def has_pictures(body: Json) -> bool:
    """Tell whether any item contains a picture."""
    return any(map(_has_picture, read_items(body)))


def shows_picture(body: Json) -> bool:
    """Tell whether the newest turn contains a picture."""
    for item in reversed(read_items(body)):
        if _is_assistants(item):
            break
        if _has_picture(item):
            return True
    return False


def pictures_as_text(body: Json) -> Body:
    """Replace each picture with a sentence."""
    items = [
        {**item, name: _without_pictures(item[name])}
        if (name := _holder(item)) and _has_picture(item)
        else item
        for item in read_items(body)
    ]
    return {**body, "input": items} if items else dict(body)


def _record_items(call: Json, output: Any) -> Iterator[Json]:
    """Return a call and its result as a message of the user, with its pictures."""
    parts = output if isinstance(output, list) else []
    pictures = [part for part in parts if _is_picture(part)]
    name, arguments = call.get("name", ""), call.get("arguments", "")
    record = call_record(name, arguments, _without_pictures(output, "[below]"))
    content: str | list[Json] = record
    if pictures:
        content = [{"type": "input_text", "text": record}, *pictures]
    yield {"type": "message", "role": "user", "content": content}


def _is_assistants(item: Json) -> bool:
    kinds = (_CALL, "reasoning")
    return item.get("role") == "assistant" or item.get("type") in kinds


def _holder(item: Json) -> str:
    """Return the field of an item that may hold pictures."""
    return "output" if item.get("type") == _RESULT else "content"


def _has_picture(item: Json) -> bool:
    parts = item.get(_holder(item))
    return isinstance(parts, list) and any(map(_is_picture, parts))


def _is_picture(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "input_image"


def _without_pictures(parts: Any, words: str = NO_PICTURE) -> str:
    """Return a plain string, as for any message without a picture."""
    if isinstance(parts, str):
        return parts
    texts = (words if _is_picture(part) else part.get("text", "") for part in parts)
    return "\n\n".join(texts)
