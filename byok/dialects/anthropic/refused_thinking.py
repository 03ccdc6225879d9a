"""Thinking blocks that the Messages API refuses: they and all before them are left out.

Signatures belong to a model, and with the newest models to the conversation before them
(the API's guide, "Thinking"). Blocks after the refused one may still be valid, so they
stay, and so does what the model thinks later.
"""

import hashlib
import re
from typing import Any

from byok.chat import Json
from byok.dialects.anthropic.thinking import is_thought, without_thinking
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow

_REFUSED = re.compile(r"signature|blocks? .*cannot be modified|block.?binding")
_PLACE = re.compile(r"messages\.(\d+)\.")


def refused_thinking_row() -> RemedyRow:
    """Return the row for signatures and blocks that are refused."""
    return RemedyRow(_find, _drop)


def _find(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find the last block of the message that is named, or of all messages."""
    if not _REFUSED.search(refused.text.lower()):
        return None
    messages = list(refused.body.get("messages") or ())
    if place := _PLACE.search(refused.text):
        messages = messages[: int(place[1]) + 1]
    blocks = [block for m in messages for block in m["content"] if is_thought(block)]
    return ("", _digest(blocks[-1])) if blocks else None


def _drop(body: Json, remedy: Remedy) -> Body:
    messages: list[Any] = list(body.get("messages") or ())
    for place, message in enumerate(messages):
        digests = (_digest(b) for b in message["content"] if is_thought(b))
        if remedy.version in digests:
            kept = [*without_thinking(messages[: place + 1]), *messages[place + 1 :]]
            return {**body, "messages": kept}
    return dict(body)


def _digest(block: Json) -> str:
    mark = str(block.get("signature") or block.get("data"))
    return hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=8).hexdigest()
