"""Pictures that the Messages API refuses as too large: each becomes a sentence."""

import re
from typing import Any

from byok.chat import Json
from byok.dialects.chat_changes import digest_of_picture, write_picture_as_text
from byok.dialects.remedies import RefusedRequest, RemedyRow
from byok.errors import RefusalKind

_PLACE = re.compile(
    r"messages\.(\d+)\.content\.(\d+)(?:\.tool_result\.content\.(\d+))?"
)
_TOO_LARGE = "[a picture stood here; it is too large for this model]"


def large_picture_row() -> RemedyRow:
    """Return the row that replaces the picture whose place a refusal names."""
    return RemedyRow(
        _find,
        rewrite=lambda chat, r: write_picture_as_text(chat, r.version, _TOO_LARGE),
        notice="A picture is too large for this model: a sentence stands in its place.",
    )


def _find(refused: RefusedRequest) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_LARGE:
        return None
    found = _PLACE.search(refused.text)
    block = _block_at(refused.body, found) if found else {}
    if block.get("type") != "image":
        return None
    return ("", digest_of_picture(str(block.get("source", {}).get("data", ""))))


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
