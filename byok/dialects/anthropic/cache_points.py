"""Messages API: where the prefix of a prompt is cached.

A body may have four points; the prompt is read from the cache up to the last one that
was written before ("Prompt caching" in the API's guide). The field at the top sets one
at the last block by itself. A second one is behind tools and system prompt, which other
conversations share. Before a point the API looks back 20 blocks for what was written: a
turn that added more gets a third one at its beginning, where the last request ended.
"""

from typing import Any

from byok.chat import Json
from byok.dialects.remedies import Body

FIELD = "cache_control"
_LOOKBACK = 20
_EPHEMERAL = {"type": "ephemeral"}


def mark_prefix(body: Json) -> Body:
    """Set the point behind the system prompt, or the tools where there is none."""
    for name in ("system", "tools"):  # the system prompt comes after the tools
        if blocks := body.get(name):
            last = {**blocks[-1], FIELD: _EPHEMERAL}
            return {**body, name: [*map(without_point, blocks[:-1]), last]}
    return dict(body)


def ask_for_cache(body: Json) -> Body:
    """Set all points of a body that has none."""
    return {**_mark_turn(mark_prefix(body)), FIELD: _EPHEMERAL}


def has_points(body: Json) -> bool:
    """Tell whether any block has a point."""
    blocks = [*(body.get("tools") or ()), *(body.get("system") or ())]
    blocks += [block for m in body.get("messages") or () for block in m["content"]]
    return any(FIELD in block for block in blocks)


def without_cache(body: Json) -> Body:
    """Remove all points."""
    kept = {key: value for key, value in body.items() if key != FIELD}
    for name in ("system", "tools"):
        if isinstance(blocks := kept.get(name), list):
            kept[name] = [*map(without_point, blocks)]
    messages = kept.get("messages") or ()
    kept["messages"] = [
        {**m, "content": [*map(without_point, m["content"])]} for m in messages
    ]
    return kept


def without_point(block: Json) -> dict[str, Any]:
    """Return a block without a point."""
    return {key: value for key, value in block.items() if key != FIELD}


def _mark_turn(body: Body) -> Body:
    messages = list(body["messages"])
    asked = [n for n, m in enumerate(messages) if m["role"] == "user"][-2:-1]
    added = sum(len(m["content"]) for m in messages[asked[0] + 1 :]) if asked else 0
    if added < _LOOKBACK:
        return body
    *before, last = messages[asked[0]]["content"]
    marked = [*before, {**last, FIELD: _EPHEMERAL}]
    messages[asked[0]] = {**messages[asked[0]], "content": marked}
    return {**body, "messages": messages}
