"""A chat/completions body: the tools in it, and text for its calls and pictures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byok.chat import Json
from byok.dialects.openai_chat.fields import DETAILS, REASONING_FIELDS
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE, call_record
from byok.dialects.remedies import Body

_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


def read_tools(body: Json) -> list[Body]:
    """Return the functions offered in a body."""
    return [tool["function"] for tool in body.get("tools") or ()]


def offer_tools(body: Json, functions: Sequence[Json]) -> Body:
    """Return a body with these functions; without any, their other fields go too."""
    if functions:
        tools = [{"type": "function", "function": item} for item in functions]
        return {**body, "tools": tools}
    return {key: value for key, value in body.items() if key not in _ABOUT_TOOLS}


def called_tools(body: Json) -> set[str]:
    """Return the names of the functions that were called in the history."""
    return {
        call["function"]["name"]
        for message in body["messages"]
        for call in message.get("tool_calls") or ()
    }


def is_first_turn(body: Json) -> bool:
    """Tell whether nothing of the assistant is in the history."""
    return all(message["role"] != "assistant" for message in body["messages"])


def has_calls(body: Json) -> bool:
    """Tell whether the history has tool calls or results."""
    return any(
        message["role"] == "tool" or message.get("tool_calls")
        for message in body.get("messages") or ()
    )


def calls_as_text(body: Json) -> Body:
    """Move tool calls and results into the user's messages, marked as records.

    In the assistant's messages they would be an example for the model to imitate.
    """
    if not has_calls(body):
        return dict(body)
    out: list[dict[str, Any]] = []
    asked: dict[str, Json] = {}
    for message in body["messages"]:
        calls = message.get("tool_calls") or ()
        asked |= {call["id"]: call["function"] for call in calls}
        if message["role"] == "tool":
            function = asked.get(message["tool_call_id"], {})
            _say(out, "user", _record(function, message["content"]))
        elif not calls:
            _say(out, message["role"], message["content"])
        elif message["content"]:
            _say(out, "assistant", message["content"])
    if out and out[0]["role"] == "system":
        out[0] = {**out[0], "content": _join_contents(out[0]["content"], ABOUT_RECORDS)}
    else:
        out.insert(0, {"role": "system", "content": ABOUT_RECORDS})
    return {**body, "messages": out}


def has_pictures(body: Json) -> bool:
    """Tell whether any message contains a picture."""
    return any(map(_has_picture, body.get("messages") or ()))


def shows_picture(body: Json) -> bool:
    """Tell whether the newest turn contains a picture."""
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        if _has_picture(message):
            return True
    return False


def pictures_as_text(body: Json) -> Body:
    """Replace each picture with a sentence."""
    messages = [
        {**message, "content": _without_pictures(message["content"])}
        if _has_picture(message)
        else message
        for message in body.get("messages") or ()
    ]
    return {**body, "messages": messages} if messages else dict(body)


def _record(function: Json, content: Any) -> str:
    name, arguments = function.get("name", ""), function.get("arguments", "")
    return call_record(name, arguments, content)


def _say(messages: list[dict[str, Any]], role: str, content: Any) -> None:
    """Add content; strict upstreams refuse two messages of one role in a row."""
    if messages and messages[-1]["role"] == role:
        content = _join_contents(messages.pop()["content"], content)
    messages.append({"role": role, "content": content})


def _join_contents(one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    return [*_as_parts(one), *_as_parts(other)]


def _as_parts(content: Any) -> list[Any]:
    text = isinstance(content, str)
    return [{"type": "text", "text": content}] if text else list(content)


def _parts(message: Json) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    yield from content if isinstance(content, list) else ()


def _has_picture(message: Json) -> bool:
    return any(map(_is_picture, _parts(message)))


def _is_picture(part: Json) -> bool:
    return part.get("type") == "image_url"


def _without_pictures(content: list[Json]) -> str:
    """Return a plain string, as for any message without a picture."""
    texts = (NO_PICTURE if _is_picture(part) else part["text"] for part in content)
    return "\n\n".join(texts)


def without_reasoning(body: Json) -> Body:
    """Remove the reasoning from the history, where it is in fields of its own."""
    messages = body.get("messages")
    names = (*REASONING_FIELDS, DETAILS)
    return {**body, "messages": [_without(m, names) for m in messages or ()]}


def with_blank_reasoning(body: Json) -> Body:
    """Replace empty reasoning by a space, where it is in a field of its own."""
    messages = [
        {**m, **{name: " " for name in REASONING_FIELDS if m.get(name) == ""}}
        for m in body.get("messages") or ()
    ]
    return {**body, "messages": messages}


def without_cache_points(body: Json) -> Body:
    """Remove the points up to which a prompt is cached."""
    name = ("cache_control",)
    messages = [
        {**m, "content": [_without(part, name) for part in _parts(m)]}
        if isinstance(m.get("content"), list)
        else m
        for m in body.get("messages") or ()
    ]
    return {**_without(body, name), "messages": messages}


def _without(item: Json, names: Sequence[str]) -> Body:
    return {key: value for key, value in item.items() if key not in names}
