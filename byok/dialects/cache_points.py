"""Cache points, which mark the prefix of a prompt to cache, and keys of prompt caches.

Claude is asked for caching by the field `cache_control`, in its own API and in Chat
Completions of gateways; Qwen accepts it in the content of messages. At the top of a
body, the field sets a point at the last block, wherever the conversation ends. Other
points stand in blocks of the system prompt, of tools or of messages. A prompt is read
from the cache up to the last point that an earlier request wrote. Sources: "Prompt
caching" in Anthropic's guide, the API references of OpenRouter and DashScope.

Bedrock and Vertex accept points in blocks, but not the field at the top. For them the
last two turns of the user have points instead: the previous request ended at the first
of these two.

A cached prefix lives for five minutes, or for an hour if each point has a `ttl`, which
doubles the price of a write.

Other vendors cache without being asked. A key of the conversation then routes its
requests to the server that has the prompt in its cache.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from byok.core.chat import ChatRequest, Json
from byok.dialects.base import Target
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyMatch, RemedyRow

FIELD = "cache_control"
_SHORT = {"type": "ephemeral"}
_LONG = {**_SHORT, "ttl": "1h"}
_AT_TOP = "top"
_TTL = "ttl"
_PARTS = ("system", "tools", "messages")
_TURNS_WITH_POINTS = 2  # the previous request ended at the first of them
_KEY_LENGTH = 32  # characters; OpenAI and xAI accept at least 64
_NAMED_PART = re.compile(rf"\b({'|'.join(_PARTS)}|content)\b\S*{FIELD}")


def point(*, is_long: bool = False) -> Json:
    """Return a cache point; `is_long` requests an hour instead of five minutes."""
    return _LONG if is_long else _SHORT


def mark_end(holder: Json, name: str, point: Json) -> Body:
    """Set a point in the last block of the field `name`, unless it has no content."""
    blocks = holder.get(name)
    if isinstance(blocks, str) and blocks:
        blocks = [{"type": "text", "text": blocks}]
    if not isinstance(blocks, list) or not blocks:
        return dict(holder)
    return {**holder, name: [*blocks[:-1], {**blocks[-1], FIELD: point}]}


def mark_messages(body: Json, indices: Iterable[int], point: Json) -> Body:
    """Set points at the ends of the messages with these indices."""
    messages = list(body["messages"])
    for index in indices:
        messages[index] = mark_end(messages[index], "content", point)
    return {**body, "messages": messages}


def ends_of_turns(messages: list[Any]) -> list[int]:
    """Return the indices of the messages that end a turn of the user.

    An earlier request may have ended at any of them.
    """
    next_roles = [*(message["role"] for message in messages[1:]), "assistant"]
    return [
        index
        for index, message in enumerate(messages)
        if message["role"] != "assistant" and next_roles[index] == "assistant"
    ]


def _find(refused: RefusedRequest) -> RemedyMatch:
    """Find out which points a host refuses; `what` is their part of the body."""
    body, text = refused.body, refused.text.lower()
    if FIELD not in text:
        return None
    if _TTL in text and _shorten(body) != body:
        return (_TTL, "")
    if named := _NAMED_PART.search(text):
        part = "messages" if named[1] == "content" else named[1]
        if _change_blocks(body, part, _without_point) != body:
            return (part, "")
    return (_AT_TOP if FIELD in body else "", "")


def _change_points(body: Json, remedy: Remedy) -> Body:
    """Remove the points of the refused part, or all of them if no part is named.

    A refused point at the top is replaced by points at the last turns of the user. A
    refused lifetime is shortened.
    """
    if remedy.what == _TTL:
        return _shorten(body)
    if remedy.what == _AT_TOP:
        if FIELD not in body:
            return dict(body)
        ends = ends_of_turns(body["messages"])[-_TURNS_WITH_POINTS:]
        return mark_messages(_without_point(body), ends, body[FIELD])
    changed = dict(body) if remedy.what else _without_point(body)
    for part in (remedy.what,) if remedy.what else _PARTS:
        changed = _change_blocks(changed, part, _without_point)
    return changed


def _shorten(body: Json) -> Body:
    """Shorten the lifetime of all points to five minutes."""

    def change(block: Json) -> Json:
        return {**block, FIELD: _SHORT} if FIELD in block else block

    changed = dict(change(body))
    for part in _PARTS:
        changed = _change_blocks(changed, part, change)
    return changed


def _change_blocks(body: Json, part: str, change: Callable[[Json], Json]) -> Body:
    """Return a body with changed blocks in `system`, `tools` or `messages`."""
    items = body.get(part)
    if not isinstance(items, list):
        return dict(body)
    if part != "messages":
        return {**body, part: [*map(change, items)]}
    changed = [
        {**message, "content": [*map(change, message["content"])]}
        if isinstance(message.get("content"), list)
        else message
        for message in items
    ]
    return {**body, part: changed}


CACHE_ROW = RemedyRow(_find, _change_points)


def _without_point(block: Json) -> Body:
    return {key: value for key, value in block.items() if key != FIELD}


def prompt_cache_key(chat: ChatRequest) -> str:
    """Return the key of a conversation, "" if the client sent neither key nor id.

    It is a digest, so that the client's key or id does not leave this machine.
    """
    identity = chat.cache_key or chat.conversation
    if not identity:
        return ""
    raw = identity.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"prompt cache:" + raw).hexdigest()[:_KEY_LENGTH]


def key_fields(chat: ChatRequest, target: Target) -> Json:
    """Return the fields of OpenAI's APIs for the prompt cache of a conversation."""
    key = prompt_cache_key(chat) if target.cache else ""
    if not key:
        return {}
    retention = {"prompt_cache_retention": "24h"} if target.long_cache else {}
    return {"prompt_cache_key": key, **retention}
