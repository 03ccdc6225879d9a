"""byok as an MCP server over standard input and output.

A message is a line of JSON-RPC; an unreadable line gets an error response. The SDK's
own transport drops bad lines silently, has no limit for the length of a line, and reads
in a thread that blocks the end of the program.
"""

import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import BinaryIO, NamedTuple, Protocol

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError, JSONRPCMessage

from byok.core.errors import ByokError, from_os_error
from byok.server.mcp.tools import CodeSource, make_server, read_message, write_error

_log = logging.getLogger(__name__)
MAX_LINE = 4 * 2**20  # bytes
_MAX_QUEUED_LINES = 64
_END_SECONDS = 1.5
_POLL_SECONDS = 5.0

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
_IncomingWriter = MemoryObjectSendStream[SessionMessage | Exception]
_OutgoingReader = MemoryObjectReceiveStream[SessionMessage]


class AskingClient(CodeSource, Protocol):
    """Answers questions, and switches to a daemon when one has started."""

    async def refresh(self) -> None:
        """Open the index, or switch to a daemon that runs now."""


def read_line(file: BinaryIO, max_bytes: int = MAX_LINE) -> bytes | None:
    """Return a line, b"" at the end; None for one that is too long, which is skipped.

    Bytes at the end of the input without a line end are no message.
    """
    line = file.readline(max_bytes + 1)
    if line.endswith(b"\n"):
        return line
    if len(line) <= max_bytes:
        return b""
    while line and not line.endswith(b"\n"):
        line = file.readline(max_bytes)
    return None


def decode(line: bytes | None) -> tuple[JSONRPCMessage | None, JSONRPCError | None]:
    """Return a message, or the error response to a bad line; neither if it is blank."""
    if line is None:
        return None, write_error(INVALID_REQUEST, "The line is too long")
    if not line.strip():
        return None, None
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None, write_error(PARSE_ERROR, "Parse error")
    message = read_message(value)
    return (None, message) if isinstance(message, JSONRPCError) else (message, None)


def encode(message: JSONRPCMessage) -> bytes:
    """Write one message as a line."""
    text = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode() + b"\n"


class Descriptors(NamedTuple):
    """The file descriptors that messages are read from and written to."""

    source: int
    sink: int


def take_over() -> Descriptors:
    """Reserve stdin and stdout for messages.

    Other code finds stdin empty, and its prints go to stderr.
    """
    descriptors = Descriptors(os.dup(0), os.dup(1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return descriptors


@asynccontextmanager
async def streams(
    descriptors: Descriptors, on_end: Callable[[], None] = lambda: None
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Yield the stream of incoming messages and the stream for outgoing ones.

    The incoming stream ends when the client closes either pipe; `on_end` is called at
    once.
    """
    writer, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, reader = anyio.create_memory_object_stream[SessionMessage](0)
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(_MAX_QUEUED_LINES)
    loop = asyncio.get_running_loop()
    threading.Thread(
        target=_read, args=(descriptors.source, loop, lines), daemon=True, name="stdin"
    ).start()

    async def receive(replies: Outgoing) -> None:
        async with writer, replies:
            await _receive(lines, writer, replies)
            on_end()

    async def send() -> None:
        async with reader:
            await _send(reader, descriptors.sink)
        on_end()
        await writer.aclose()

    async with anyio.create_task_group() as group:
        group.start_soon(receive, outgoing.clone())
        group.start_soon(send)
        async with incoming, outgoing:
            yield incoming, outgoing
        group.cancel_scope.cancel()


async def _receive(
    lines: "asyncio.Queue[bytes | None]", writer: _IncomingWriter, replies: Outgoing
) -> None:
    """Forward messages until the input ends; reply to bad lines with an error."""
    with contextlib.suppress(anyio.BrokenResourceError):
        while (line := await lines.get()) != b"":
            message, error = decode(line)
            if message is not None:
                await writer.send(SessionMessage(message))
            elif error is not None:
                await replies.send(SessionMessage(error))


async def _send(reader: _OutgoingReader, sink: int) -> None:
    """Write messages until there are no more, or the client has closed its pipe."""
    async for item in reader:
        try:
            await asyncio.to_thread(_write, sink, encode(item.message))
        except OSError:
            return


def _read(
    source: int, loop: asyncio.AbstractEventLoop, lines: "asyncio.Queue[bytes | None]"
) -> None:
    """Queue lines until the end (b""), no faster than the messages are handled."""
    file = os.fdopen(source, "rb", closefd=False)
    line: bytes | None = None
    while line != b"":
        try:
            line = read_line(file)
        except OSError:
            line = b""
        try:
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        except (RuntimeError, asyncio.CancelledError):  # the loop has ended
            return


def _write(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


async def serve(
    client: AskingClient,
    descriptors: Descriptors,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Answer until the client closes the connection or a signal arrives.

    `on_end` is called at that moment.
    """
    async with anyio.create_task_group() as group:

        def stop() -> None:
            on_end()
            group.cancel_scope.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, stop)
        async with streams(descriptors, on_end) as (incoming, outgoing):
            group.start_soon(_poll_daemon, client)
            server = make_server(client)
            options = server.create_initialization_options()
            await server.run(incoming, outgoing, options)
        group.cancel_scope.cancel()


async def _poll_daemon(client: AskingClient) -> None:
    """Start indexing before the first question; switch to a daemon that starts."""
    last_error = ""
    while True:
        try:
            await client.refresh()
        except (ByokError, OSError) as error:
            failure = from_os_error(error) if isinstance(error, OSError) else error
            if last_error != failure.sentence:  # logged once; each call reports it, too
                last_error = failure.sentence
                _log.warning("%s", last_error)
        await asyncio.sleep(_POLL_SECONDS)


def end_soon(seconds: float = _END_SECONDS) -> None:
    """Exit after `seconds` even if threads still run, as the client is gone.

    The index repeats unfinished work at its next start; its workers end by themselves.
    """
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
