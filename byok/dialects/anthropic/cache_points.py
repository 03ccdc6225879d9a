"""Messages API: where the prefix of a prompt is cached.

A body may have four points; the prompt is read from the cache up to the last one that
was written before ("Prompt caching" in the API's guide). The field at the top sets one
at the last block by itself. A second one is behind tools and system prompt, which other
conversations share.
"""

from typing import Any

from byok.chat import Json
from byok.dialects.remedies import Body

FIELD = "cache_control"
_EPHEMERAL = {"type": "ephemeral"}


def mark_prefix(body: Json) -> Body:
    """Set the point behind the system prompt, or the tools where there is none."""
    for name in ("system", "tools"):  # the system prompt comes after the tools
        if blocks := body.get(name):
            last = {**blocks[-1], FIELD: _EPHEMERAL}
            return {**body, name: [*map(without_point, blocks[:-1]), last]}
    return dict(body)


def ask_for_cache(body: Json) -> Body:
    """Set both points."""
    return {**mark_prefix(body), FIELD: _EPHEMERAL}


def has_points(body: Json) -> bool:
    """Tell whether a block of the tools or the system prompt has a point."""
    return any(FIELD in block for block in _prefix(body))


def without_cache(body: Json) -> Body:
    """Remove all points."""
    kept = {key: value for key, value in body.items() if key != FIELD}
    for name in ("system", "tools"):
        if isinstance(blocks := kept.get(name), list):
            kept[name] = [*map(without_point, blocks)]
    return kept


def without_point(block: Json) -> dict[str, Any]:
    """Return a block without a point."""
    return {key: value for key, value in block.items() if key != FIELD}


def _prefix(body: Json) -> list[Json]:
    return [*(body.get("tools") or ()), *(body.get("system") or ())]
