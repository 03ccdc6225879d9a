"""Messages API: where the prefix of a prompt is cached, and what a host refuses of it.

A body may have four points; the prompt is read from the cache up to the last one that
was written before ("Prompt caching" in the API's guide). The field at the top sets one
at the last block by itself. A second one is behind tools and system prompt, which other
conversations share. Before a point the API looks back 20 blocks for what was written: a
turn that added more gets a third one at its beginning, where the last request ended.

Bedrock and Vertex know the points of blocks, but not the field at the top (the same
page, "Automatic caching"). There the last two messages of the user have points instead:
the last request ended at the first of the two.

What is cached is kept for five minutes, or for an hour with a `ttl` in each point, for
twice the price of a write (the same page, "1-hour cache duration").
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from byok.chat import Json
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow

FIELD = "cache_control"
_LOOKBACK = 20
_EPHEMERAL = {"type": "ephemeral"}
_LONG = {**_EPHEMERAL, "ttl": "1h"}
_AT_TOP = "top"
_TTL = "ttl"
_PARTS = ("system", "tools", "messages")
_PLACE = re.compile(rf"\b({'|'.join(_PARTS)})\b\S*{FIELD}")


def ask_for_cache(body: Json, is_long: bool = False) -> Body:
    """Set all points of a body that has none; `is_long` asks for an hour."""
    marked = {**_mark_turn(_mark_prefix(body)), FIELD: _EPHEMERAL}
    return _set_points(marked, _LONG) if is_long else marked


def cache_row() -> RemedyRow:
    """Return the row that removes the points which a host does not take, no others."""
    return RemedyRow(_find, _remove)


def _find(refused: RefusedRequest) -> tuple[str, str] | None:
    if FIELD not in refused.text:
        return None
    if _TTL in refused.text and _set_points(refused.body, _EPHEMERAL) != refused.body:
        return (_TTL, "")
    place = _PLACE.search(refused.text)
    if place and _has_points(refused.body, place[1]):
        return (place[1], "")
    if FIELD in refused.body:
        return (_AT_TOP, "")
    return ("", "") if any(_has_points(refused.body, p) for p in _PARTS) else None


def _remove(body: Json, remedy: Remedy) -> Body:
    """Remove the points of a part of the body, or all of them if no part is named."""
    if remedy.what == _TTL:
        return _set_points(body, _EPHEMERAL)
    if remedy.what == _AT_TOP:
        if FIELD not in body:
            return dict(body)
        body = {key: value for key, value in body.items() if key != FIELD}
        messages = _change_blocks(body, "messages", _without_point)["messages"]
        ends = [n for n, m in enumerate(messages) if m["role"] == "user"][-2:]
        return {**body, "messages": _mark_ends(messages, ends)}
    parts = (remedy.what,) if remedy.what else _PARTS
    kept = {key: v for key, v in body.items() if key != FIELD or remedy.what}
    for part in parts:
        kept = _change_blocks(kept, part, _without_point)
    return kept


def _has_points(body: Json, part: str) -> bool:
    return _change_blocks(body, part, _without_point) != body


def _set_points(body: Json, point: Json) -> Body:
    """Return a body whose points all are `point`."""

    def change(block: Json) -> Json:
        return {**block, FIELD: point} if FIELD in block else block

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
    changed = [{**m, "content": [*map(change, m["content"])]} for m in items]
    return {**body, part: changed}


def _mark_prefix(body: Json) -> Body:
    """Set the point behind the system prompt, or the tools where there is none."""
    for name in ("system", "tools"):  # the system prompt comes after the tools
        if blocks := body.get(name):
            return {**body, name: [*blocks[:-1], {**blocks[-1], FIELD: _EPHEMERAL}]}
    return dict(body)


def _mark_turn(body: Body) -> Body:
    messages = list(body["messages"])
    asked = [n for n, m in enumerate(messages) if m["role"] == "user"][-2:-1]
    added = sum(len(m["content"]) for m in messages[asked[0] + 1 :]) if asked else 0
    return (
        body if added < _LOOKBACK else {**body, "messages": _mark_ends(messages, asked)}
    )


def _mark_ends(messages: Iterable[Any], places: Iterable[int]) -> list[Any]:
    """Set points behind the last blocks of the messages at these places."""
    marked = list(messages)
    for place in places:
        *before, last = marked[place]["content"]
        content = [*before, {**last, FIELD: _EPHEMERAL}]
        marked[place] = {**marked[place], "content": content}
    return marked


def _without_point(block: Json) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != FIELD}
