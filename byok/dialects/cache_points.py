"""Cache points: up to where a prompt is cached, and what a host refuses of them.

Claude is asked for caching by a field, in its own API and in Chat Completions behind a
gateway; Qwen takes it in the content of messages. The field at the top of a body sets a
point at the last block by itself, which moves with the conversation; others stand in
blocks of the system prompt, of tools or of messages. The prompt is read from the cache
up to the last point that was written before. Sources: "Prompt caching" in Anthropic's
guide, the API references of OpenRouter and DashScope.

Bedrock and Vertex know the points of blocks, but not the field at the top. There the
last two turns of the user have points instead: the last request ended at the first of
the two.

What is cached is kept for five minutes, or for an hour with a `ttl` in each point, for
twice the price of a write.

Others cache unasked. There a key of the conversation leads its requests to the host
that has its prompt in the cache.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

from byok.core.chat import ChatRequest, Json
from byok.dialects.base import Target
from byok.dialects.remedies import Body, Found, RefusedRequest, Remedy, RemedyRow

FIELD = "cache_control"
_SHORT = {"type": "ephemeral"}
_LONG = {**_SHORT, "ttl": "1h"}
_AT_TOP = "top"
_TTL = "ttl"
_PARTS = ("system", "tools", "messages")
_PLACE = re.compile(rf"\b({'|'.join(_PARTS)}|content)\b\S*{FIELD}")


def point(*, is_long: bool = False) -> Json:
    """Return a point; `is_long` asks for an hour."""
    return _LONG if is_long else _SHORT


def mark_end(holder: Json, name: str, point: Json) -> Body:
    """Set a point at the end of some content, if there is any."""
    blocks = holder.get(name)
    if isinstance(blocks, str) and blocks:
        blocks = [{"type": "text", "text": blocks}]
    if not isinstance(blocks, list) or not blocks:
        return dict(holder)
    return {**holder, name: [*blocks[:-1], {**blocks[-1], FIELD: point}]}


def mark_messages(body: Json, places: Iterable[int], point: Json) -> Body:
    """Set points at the ends of some messages."""
    messages = list(body["messages"])
    for place in places:
        messages[place] = mark_end(messages[place], "content", point)
    return {**body, "messages": messages}


def ends_of_turns(messages: list[Any]) -> list[int]:
    """Return the places at which the user's turns end, where a request may have."""
    after = [*(message["role"] for message in messages[1:]), "assistant"]
    return [
        place
        for place, message in enumerate(messages)
        if message["role"] != "assistant" and after[place] == "assistant"
    ]


def _find(refused: RefusedRequest) -> Found:
    """Find which points a host does not take."""
    body, text = refused.body, refused.text.lower()
    if FIELD not in text:
        return None
    if _TTL in text and _shorten(body) != body:
        return (_TTL, "")
    if place := _PLACE.search(text):
        part = "messages" if place[1] == "content" else place[1]
        if _change_blocks(body, part, _without_point) != body:
            return (part, "")
    return (_AT_TOP if FIELD in body else "", "")


def _remove(body: Json, remedy: Remedy) -> Body:
    """Remove the points of a part of the body, or all of them if no part is named."""
    if remedy.what == _TTL:
        return _shorten(body)
    if remedy.what == _AT_TOP:
        if FIELD not in body:
            return dict(body)
        ends = ends_of_turns(body["messages"])[-2:]
        return mark_messages(_without_point(body), ends, body[FIELD])
    kept = dict(body) if remedy.what else _without_point(body)
    for part in (remedy.what,) if remedy.what else _PARTS:
        kept = _change_blocks(kept, part, _without_point)
    return kept


CACHE_ROW = RemedyRow(_find, _remove)


def _shorten(body: Json) -> Body:
    """Ask for five minutes in all points."""

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


def _without_point(block: Json) -> Body:
    return {key: value for key, value in block.items() if key != FIELD}


# The key of a conversation.


_LENGTH = 32  # characters; OpenAI and xAI accept at least 64


def prompt_cache_key(chat: ChatRequest) -> str:
    """Return a key that stays the same in a conversation, "" where it has no id.

    It is a digest, so that the client's own key or id stays on this machine.
    """
    name = chat.cache_key or chat.conversation
    if not name:
        return ""
    raw = name.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"prompt cache:" + raw).hexdigest()[:_LENGTH]


def key_fields(chat: ChatRequest, target: Target) -> Json:
    """Return the fields of OpenAI's APIs for the cache of a conversation."""
    key = prompt_cache_key(chat) if target.cache else ""
    if not key:
        return {}
    kept = {"prompt_cache_retention": "24h"} if target.long_cache else {}
    return {"prompt_cache_key": key, **kept}
