"""Clients' connections: limits, malformed requests, and their end at a restart."""

import asyncio
import contextlib
import logging
import secrets
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from socket import socket
from typing import Any

from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from byok.core.daemon.sockets import BACKLOG
from byok.core.errors import BadRequest, ByokError
from byok.core.redact import Redactor
from byok.server.http.reply import error_response, internal_error

_log = logging.getLogger(__name__)
_MAX_LINE_BYTES = 8190
_MAX_HEADERS = 64
_IDLE_SECONDS = 75.0
_WARN_SECONDS = 10.0  # between two warnings about a flood of connections
# Connections that the loop accepts before it reads again: a request that has arrived is
# read before a flood of connections behind it. Others wait in the system's queue.
_ACCEPT_AT_ONCE = 8
_LOOP_PASSES = 3  # until a connection that was accepted has its protocol


class _Connection(RequestHandler):
    """One connection. Text that the parser refuses is neither echoed nor logged."""

    __slots__ = ("_deadline", "_server", "is_used")

    def __init__(self, server: "HttpServer", **limits: Any) -> None:
        super().__init__(server, **limits)
        self._server = server
        self._deadline: asyncio.TimerHandle | None = None
        self.is_used = False  # the head of a request has arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give the first request head a deadline; aiohttp has none."""
        super().connection_made(transport)
        if not transport.is_closing():
            self._server.untrusted[self] = None
            self._set_deadline(self._server.head_seconds)

    def head_arrived(self) -> None:
        """Remove the deadline: from here on, the idle limit of aiohttp holds."""
        self.is_used = True
        self._lift_deadline()

    def pause_writing(self) -> None:
        """Set a deadline for a client that does not read: its window is full."""
        super().pause_writing()
        self._set_deadline(self._server.patience)

    def resume_writing(self) -> None:
        """Remove the deadline: the client reads again."""
        super().resume_writing()
        self._lift_deadline()

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self._loop.call_later(seconds, self.disconnect)

    def _lift_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def end_soon(self) -> None:
        """Close the connection after its current request, or at once if it is idle.

        An unused connection stays open for the one request that it was opened for.
        aiohttp's own `close` would leave an idle connection open, and unanswered. If a
        request has begun, its body is still read, see `data_received`.
        """
        self._close = True
        is_idle = self._waiter is not None and self.is_used and not self._messages
        if is_idle and not self._has_unread:
            self.force_close()

    @property
    def _has_unread(self) -> bool:
        """Whether bytes have arrived that the loop has not read yet."""
        poll = select.poll()
        if self.transport is not None:
            poll.register(self.transport.get_extra_info("socket"), select.POLLIN)
        return bool(poll.poll(0))

    def data_received(self, data: bytes) -> None:
        """Read the last request, too: aiohttp drops data once `_close` is set."""
        is_ending, self._close = self._close, False
        super().data_received(data)
        self._close = self._close or is_ending

    def mark_trusted(self) -> None:
        """Do not close this connection in favour of others: it is the user's."""
        self._server.untrusted.pop(self, None)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection and its deadline."""
        self._lift_deadline()
        self.mark_trusted()
        super().connection_lost(exc)

    def disconnect(self) -> None:
        """Abort the connection: a pending write fails, which frees its upstream."""
        self._server.untrusted.pop(self, None)
        if self.transport is not None:
            self.transport.abort()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer a request that could not be parsed, in byok's format of errors.

        aiohttp would send and log the offending line, which may hold a key.
        """
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun already")
        error: ByokError = internal_error()
        if status >= 500:
            _log.error("a request failed", exc_info=exc)
        else:
            error = BadRequest(
                "The request is not valid HTTP.", code="bad_http", status=status
            )
        response = error_response(error, secrets.token_hex(8), Redactor())
        response.force_close()
        return response


def _make_request(
    message: Any, payload: Any, protocol: RequestHandler, writer: Any, task: Any
) -> BaseRequest:
    """Make the request of a complete head."""
    if isinstance(protocol, _Connection):
        protocol.head_arrived()
    loop = asyncio.get_running_loop()
    return BaseRequest(message, payload, protocol, writer, task, loop)


def note_token(request: BaseRequest) -> None:
    """Mark the connection of a request that had the right token."""
    if isinstance(request.protocol, _Connection):
        request.protocol.mark_trusted()


class HttpServer(Server):
    """The protocol factory; a mistyped limit fails at start instead of vanishing."""

    def __init__(
        self,
        handler: Callable[[BaseRequest], Awaitable[StreamResponse]],
        max_connections: int,
        head_seconds: float = 10.0,
        patience: float = 30.0,
    ) -> None:
        super().__init__(
            handler, request_factory=_make_request, handler_cancellation=True
        )
        self.head_seconds = head_seconds
        self.patience = patience  # seconds with a client that does not read
        self.untrusted: dict[_Connection, None] = {}  # without a token, oldest first
        self._max_connections = max_connections
        self._next_warning = float("-inf")
        self._limits: dict[str, Any] = {
            "access_log": None,
            "auto_decompress": False,
            "keepalive_timeout": _IDLE_SECONDS,
            "max_line_size": _MAX_LINE_BYTES,
            "max_field_size": _MAX_LINE_BYTES,
            "max_headers": _MAX_HEADERS,
            "lingering_time": 1.0,
        }

    def connection_made(
        self, handler: RequestHandler, transport: asyncio.Transport
    ) -> None:
        """Accept a connection; if there are too many, close the oldest stranger.

        If the token was sent on all of them, the new one is closed at once.
        """
        if len(self.connections) >= self._max_connections:
            self._warn_full()
            if not self.untrusted:
                transport.abort()
                return
            next(iter(self.untrusted)).disconnect()
        super().connection_made(handler, transport)

    def end_connections(self) -> None:
        """Let every connection end after its current request."""
        for connection in list(self.connections):
            if isinstance(connection, _Connection):
                connection.end_soon()

    @property
    def expects_requests(self) -> bool:
        """Whether a connection is open on which no request has arrived yet."""
        return any(
            isinstance(connection, _Connection) and not connection.is_used
            for connection in self.connections
        )

    def _warn_full(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._next_warning:
            self._next_warning = now + _WARN_SECONDS
            _log.warning(
                "%d connections are open: each more closes one without the token",
                self._max_connections,
            )

    def __call__(self) -> RequestHandler:
        """Make the handler of a new connection."""
        loop = asyncio.get_running_loop()
        return _Connection(self, loop=loop, **self._limits)


@asynccontextmanager
async def serve_http(
    server: HttpServer, sockets: Sequence[socket], shutdown_seconds: float
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Serve HTTP on bound sockets; yield a function that stops accepting early.

    After its call, every connection is either served here, or waits in the system's
    queue for another process that has the socket. When the block ends, open connections
    have `shutdown_seconds` before they are closed.
    """
    loop = asyncio.get_running_loop()
    accepting: list[asyncio.AbstractServer] = []

    async def accept_no_more() -> None:
        # asyncio drops a connection that it has just accepted if its server closes
        # before the next pass of the loop.
        with contextlib.suppress(NotImplementedError):  # Windows
            for sock in sockets:
                loop.remove_reader(sock)
        for _ in range(_LOOP_PASSES):
            await asyncio.sleep(0)
        close()

    def close() -> None:
        while accepting:
            accepting.pop().close()

    try:
        for sock in sockets:
            accepting.append(
                await loop.create_server(server, sock=sock, backlog=_ACCEPT_AT_ONCE)
            )
            sock.listen(BACKLOG)
        yield accept_no_more
    finally:
        close()
        await asyncio.sleep(0)  # so that requests that have arrived are begun
        server.pre_shutdown()
        await server.shutdown(shutdown_seconds)
