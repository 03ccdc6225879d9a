"""Changes to a chat/completions body: its reasoning, cache points, empty contents."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from byok.chat import Json
from byok.dialects.openai_chat.fields import DETAILS, REASONING_FIELDS
from byok.dialects.remedies import Body


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


def with_content_beside_calls(body: Json, empty: str | None) -> Body:
    """Let the content be `empty` where a message has tool calls but no words."""
    messages = [
        {**m, "content": empty} if m.get("tool_calls") and not m.get("content") else m
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


def _parts(message: Json) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    yield from content if isinstance(content, list) else ()


def _without(item: Json, names: Sequence[str]) -> Body:
    return {key: value for key, value in item.items() if key not in names}
