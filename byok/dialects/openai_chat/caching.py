"""Prompt caching in Chat Completions, for the vendors that want to be asked for it.

Claude behind OpenRouter caches with `cache_control` at the top of the body, which moves
with the conversation, and one more point behind the system message. DashScope caches up
to a part of the content that has `cache_control`. Other vendors cache unasked; a key of
the conversation leads its requests to the same host. Sources: their API references.
"""

from typing import Any

from byok.chat import ChatRequest, Json
from byok.dialects.base import Target
from byok.dialects.openai_chat.quirks import CacheForm, Quirks
from byok.dialects.prompt_cache_key import prompt_cache_key

_POINT = {"cache_control": {"type": "ephemeral"}}
_LONG_POINT = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def add_caching(
    body: dict[str, Any], chat: ChatRequest, target: Target, quirks: Quirks
) -> dict[str, str]:
    """Ask for caching in a body; return further headers."""
    if not target.cache:
        return {}
    messages = body["messages"]
    is_claude = quirks.cache is CacheForm.CLAUDE and "claude" in target.model.lower()
    point = _LONG_POINT if is_claude and target.long_cache else _POINT
    if is_claude:
        body.update(point)
    if is_claude or quirks.cache is CacheForm.PARTS:
        ends = [n for n, m in enumerate(messages) if m["role"] == "system"][-1:]
        if not is_claude:
            ends += [len(messages) - 1]
        for place in ends:
            messages[place] = _mark(messages[place], point)
    key = prompt_cache_key(chat)
    if key and quirks.cache_key:
        body[quirks.cache_key] = key
        if target.long_cache:
            body["prompt_cache_retention"] = "24h"
    return {quirks.cache_header: key} if key and quirks.cache_header else {}


def mark_last_questions(body: Json) -> dict[str, Any]:
    """Set points behind the user's last two messages instead of the one at the top."""
    if not body.keys() & _POINT.keys():
        return dict(body)
    kept = {key: value for key, value in body.items() if key not in _POINT}
    messages = list(body["messages"])
    for place in [n for n, m in enumerate(messages) if m["role"] != "assistant"][-2:]:
        messages[place] = _mark(messages[place])
    return {**kept, "messages": messages}


def _mark(message: dict[str, Any], point: Json = _POINT) -> dict[str, Any]:
    """Put a cache point at the end of a message's content."""
    content = message["content"]
    if isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        return message
    return {**message, "content": [*content[:-1], {**content[-1], **point}]}
