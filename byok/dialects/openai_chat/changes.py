"""Changes to a chat/completions body: fewer tools, text for calls and pictures."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from byok.chat import Json
from byok.dialects.refused_tools import version_of
from byok.dialects.remedies import Body
from byok.truncate import truncate_middle

_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_NO_PICTURE = "[a picture stood here; this model sees none]"
_RECORDS = (
    "Blocks headed [earlier tool call] are records of the past, "
    "not a format to imitate."
)


def tools_of(body: Json) -> list[Json]:
    """Return the functions offered in a body."""
    return [tool["function"] for tool in body.get("tools") or ()]


def without_tool(body: Json, name: str, version: str) -> Body:
    """Remove one tool, unless its definition has changed."""
    return _offering(
        body,
        (
            tool
            for tool in body.get("tools") or ()
            if tool["function"]["name"] != name
            or version_of(tool["function"]) != version
        ),
    )


def fewer_tools(body: Json, most: int) -> Body:
    """Keep at most so many tools, in their order; tools in the history come first.

    A tool that was called stays offered, so that the selection is stable from turn to
    turn.
    """
    tools = body.get("tools") or []
    if len(tools) <= most:
        return dict(body)
    called = {
        call["function"]["name"]
        for message in body["messages"]
        for call in message.get("tool_calls") or ()
    }
    ranked = sorted(tools, key=lambda tool: tool["function"]["name"] not in called)
    kept = {id(tool) for tool in ranked[:most]}
    return _offering(body, (tool for tool in tools if id(tool) in kept))


def short_descriptions(body: Json, longest: int) -> Body:
    """Truncate the descriptions of tools, not those of their parameters."""
    return _offering(
        body,
        (
            {**tool, "function": _shorten_description(tool["function"], longest)}
            for tool in body.get("tools") or ()
        ),
    )


def without_tools(body: Json) -> Body:
    """Remove all tools, and turn the calls in the history into text."""
    return calls_as_text(_offering(body, ()))


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
        out[0] = {**out[0], "content": _join_contents(out[0]["content"], _RECORDS)}
    else:
        out.insert(0, {"role": "system", "content": _RECORDS})
    return {**body, "messages": out}


def has_picture(message: Json) -> bool:
    """Tell whether a message contains a picture."""
    return any(map(_is_picture, _parts(message)))


def pictures_as_text(body: Json) -> Body:
    """Replace each picture with a sentence."""
    messages = [
        {**message, "content": _without_pictures(message["content"])}
        if has_picture(message)
        else message
        for message in body.get("messages") or ()
    ]
    return {**body, "messages": messages} if messages else dict(body)


def _offering(body: Json, tools: Iterable[Any]) -> Body:
    """Return a body with these tools; without tools, their other fields go too."""
    kept = list(tools)
    if kept:
        return {**body, "tools": kept}
    return {key: value for key, value in body.items() if key not in _ABOUT_TOOLS}


def _shorten_description(function: Json, longest: int) -> Json:
    description = function["description"]
    if len(description) <= longest:
        return function
    return {**function, "description": truncate_middle(description, longest)[:longest]}


def _record(function: Json, content: Any) -> str:
    name, arguments = function.get("name", ""), function.get("arguments", "")
    return f"[earlier tool call]\n{name} {arguments}\nresult:\n{content}"


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


def _is_picture(part: Json) -> bool:
    return part.get("type") == "image_url"


def _without_pictures(content: list[Json]) -> str:
    """Return a plain string, as for any message without a picture."""
    texts = (_NO_PICTURE if _is_picture(part) else part["text"] for part in content)
    return "\n\n".join(texts)
