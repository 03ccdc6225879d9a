"""Standard input and output as the two streams that the SDK's server needs."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from byok.mcp.lines import Lines, decode, encode

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
