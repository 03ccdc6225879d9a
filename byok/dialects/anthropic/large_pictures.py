"""Pictures that the Messages API refuses as too large: each becomes a sentence."""

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from byok.chat import Json
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow
from byok.errors import RefusalKind

_PLACE = re.compile(
    r"messages\.(\d+)\.content\.(\d+)(?:\.tool_result\.content\.(\d+))?"
)
_TOO_LARGE = "[a picture stood here; it is too large for this model]"


def large_picture_row() -> RemedyRow:
    """Return the row that replaces the picture whose place a refusal names."""
    return RemedyRow(
        _find,
        _replace,
        "A picture is too large for this model: a sentence stands in its place.",
    )


def _find(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_LARGE:
        return None
    found = _PLACE.search(refused.text)
    block = _block_at(refused.body, found) if found else {}
    return ("", _digest(block)) if block.get("type") == "image" else None


def _block_at(body: Json, place: re.Match[str]) -> Json:
    """Return the block at a place such as `messages.0.content.1`, {} for no block."""
    node: Any = {"content": body.get("messages")}
    numbers = (int(n) for n in place.groups() if n is not None)
    for number in numbers:
        inner = node.get("content") if isinstance(node, dict) else None
        if not isinstance(inner, list) or number >= len(inner):
            return {}
        node = inner[number]
    return node if isinstance(node, dict) else {}


def _replace(body: Json, remedy: Remedy) -> Body:
    def write(block: Json) -> dict[str, Any]:
        if block["type"] == "image" and _digest(block) == remedy.version:
            return {"type": "text", "text": _TOO_LARGE}
        if isinstance(inner := block.get("content"), list):
            return {**block, "content": [*map(write, inner)]}
        return dict(block)

    return {**body, "messages": [*_change_blocks(body, write)]}


def _change_blocks(
    body: Json, write: Callable[[Json], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for message in body.get("messages") or ():
        yield {**message, "content": [*map(write, message["content"])]}


def _digest(block: Json) -> str:
    data = str(block.get("source", {}).get("data", ""))
    return hashlib.blake2b(data.encode(), digest_size=8).hexdigest()
