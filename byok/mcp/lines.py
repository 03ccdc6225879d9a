"""JSON-RPC messages, one per line; an unreadable line gets an error response.

The SDK's own transport drops bad lines silently, has no limit for the length of a line,
and reads in a thread that blocks the end of the program.
"""

import orjson
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

MAX_LINE = 4 * 2**20


class Lines:
    """Splits bytes into lines; a line that is too long is reported, not kept."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._kept = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the complete lines so far; None for one that is too long."""
        lines: list[bytes | None] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._take(piece)
            lines.append(None if self._skipping else bytes(self._kept))
            self._kept.clear()
            self._skipping = False
        self._take(rest)
        return lines

    def _take(self, piece: bytes) -> None:
        if self._skipping or len(self._kept) + len(piece) > self._max:
            self._skipping = True
            self._kept.clear()
        else:
            self._kept += piece


def decode(line: bytes | None) -> tuple[JSONRPCMessage | None, JSONRPCError | None]:
    """Return a message, or the error response to a bad line; neither if it is blank."""
    if line is None:
        return None, _error(INVALID_REQUEST, "The line is too long")
    if not line.strip():
        return None, None
    try:
        given = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None, _error(PARSE_ERROR, "Parse error")
    if not isinstance(given, dict):
        return None, _error(INVALID_REQUEST, "Invalid Request: not one object")
    id = given.get("id")
    if "id" in given and not _is_id(id):
        return None, _error(INVALID_REQUEST, "Invalid Request: no such id")
    try:
        return jsonrpc_message_adapter.validate_python(given, by_name=False), None
    except ValidationError:
        if "method" not in given and ("result" in given or "error" in given):
            return None, None  # a response: byok sends clients no requests
        return None, _error(INVALID_REQUEST, "Invalid Request", id)


def encode(message: JSONRPCMessage) -> bytes:
    """Write one message as a line."""
    text = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode() + b"\n"


def _is_id(id: object) -> bool:
    return isinstance(id, str | int) and not isinstance(id, bool)


def _error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    error = ErrorData(code=code, message=message)
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)
