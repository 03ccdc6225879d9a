"""Write server-sent events, one JSON object each."""

from typing import TYPE_CHECKING

from byok.wire.ndjson import encode_line

if TYPE_CHECKING:
    from byok.chat import Json

COMMENT: "Json" = {}  # an event that clients skip, to break a silence
DONE: "Json" = {"done": True}  # the last event of Chat Completions, which is no JSON
_COMMENT = b": byok\n\n"
_DONE = b"data: [DONE]\n\n"


def encode_data(value: "Json") -> bytes:
    """Write an event without a name, `DONE` or a `COMMENT`."""
    if value is DONE:
        return _DONE
    return b"data: " + encode_line(value) + b"\n" if value else _COMMENT


def encode_named(value: "Json") -> bytes:
    """Write an event that is named by its `type`, or a `COMMENT`."""
    if not value:
        return _COMMENT
    name = str(value["type"]).encode()
    return b"event: " + name + b"\ndata: " + encode_line(value) + b"\n"
