"""Standard input and output as JSON-RPC messages for the SDK's server."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

# JSON-RPC messages, one per line; an unreadable line gets an error response.
#
# The SDK's own transport drops bad lines silently, has no limit for the length of a
# line, and reads in a thread that blocks the end of the program.


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


_CHUNK = 65_536
_WAITING = 64

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
_Into = MemoryObjectSendStream[SessionMessage | Exception]
_OutOf = MemoryObjectReceiveStream[SessionMessage]


class Descriptors(NamedTuple):
    """The file descriptors that messages are read from and written to."""

    source: int
    sink: int


def take_over() -> Descriptors:
    """Reserve stdin and stdout for messages.

    Other code finds stdin empty, and what it prints goes to stderr.
    """
    own = Descriptors(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return own


@asynccontextmanager
async def streams(
    own: Descriptors, on_end: Callable[[], None] = lambda: None
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Give the stream of incoming messages and the stream for outgoing ones.

    The incoming stream ends when the client closes either pipe; `on_end` is called at
    once.
    """
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](0)
    arrived: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
    loop = asyncio.get_running_loop()
    threading.Thread(
        target=_read, args=(own.source, loop, arrived), daemon=True, name="stdin"
    ).start()

    async def receive(replies: Outgoing) -> None:
        async with into, replies:
            await _receive(arrived, into, replies)
            on_end()

    async def send() -> None:
        async with out_of:
            await _send(out_of, own.sink)
        on_end()
        await into.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(receive, outgoing.clone())
        group.start_soon(send)
        async with incoming, outgoing:
            yield incoming, outgoing
        group.cancel_scope.cancel()


async def _receive(
    arrived: "asyncio.Queue[bytes]", into: _Into, replies: Outgoing
) -> None:
    """Pass messages on until the input ends; a line that is none is answered."""
    lines = Lines()
    with contextlib.suppress(anyio.BrokenResourceError):
        while data := await arrived.get():
            for line in lines.feed(data):
                message, error = decode(line)
                if message is not None:
                    await into.send(SessionMessage(message))
                elif error is not None:
                    await replies.send(SessionMessage(error))


async def _send(out_of: _OutOf, sink: int) -> None:
    """Write messages until there are no more, or nobody reads them."""
    async for item in out_of:
        try:
            await asyncio.to_thread(_write, sink, encode(item.message))
        except OSError:
            return


def _read(
    source: int, loop: asyncio.AbstractEventLoop, arrived: "asyncio.Queue[bytes]"
) -> None:
    """Read until the end (b""), no faster than the messages are handled."""
    while True:
        try:
            data = os.read(source, _CHUNK)
        except OSError:
            data = b""
        try:
            asyncio.run_coroutine_threadsafe(arrived.put(data), loop).result()
        except (RuntimeError, asyncio.CancelledError):  # the loop has ended
            return
        if not data:
            return


def _write(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
