"""Answers as HTTP responses: JSON, errors, and the lines of a stream."""

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.augment.chat_reply import chunk
from byok.chat import Json
from byok.errors import ByokError, UpstreamRefused
from byok.redact import Redactor
from byok.wire.ndjson import encode_line

_COMMON = {
    "Server": "byok",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
_STREAM = {
    **_COMMON,
    "Content-Type": "application/x-ndjson; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
HEARTBEAT = encode_line(chunk())
FACTS = HEARTBEAT  # nothing was retrieved, no blob is unknown


class _Stream(StreamResponse):
    """A stream whose head leaves in one packet with its first bytes."""

    _send_headers_immediately = False


def json_response(body: Json, status: int = 200) -> Response:
    """Answer with one object."""
    return Response(
        body=encode_line(body),
        status=status,
        headers={**_COMMON, "Content-Type": "application/json"},
    )


def error_body(error: ByokError, request_id: str, redactor: Redactor) -> dict[str, Any]:
    """Write an error in the one shape that every client reads."""
    message = redactor(str(error))
    return {
        "error": {
            "code": error.code,
            "message": message,
            "hint": redactor(error.hint),
            "request_id": request_id,
            "retryable": error.retryable,
        },
        "message": message,
    }


def error_response(error: ByokError, request_id: str, redactor: Redactor) -> Response:
    """Answer with an error; a permanent failure is never a 5xx."""
    response = json_response(error_body(error, request_id, redactor), error.status)
    if isinstance(error, UpstreamRefused) and error.retry_after is not None:
        response.headers["Retry-After"] = str(round(error.retry_after))
    elif error.status == 503:
        response.headers["Retry-After"] = "2"
    if error.status in (400, 408, 413):
        response.force_close()  # the rest of the body is not worth reading
    return response


def internal_error() -> ByokError:
    """Stand for a fault of byok's own, which the log has in full."""
    return ByokError(
        "Internal error.",
        hint="The log says more: state/log/byok.log in byok's folder.",
    )


async def static_stream(request: BaseRequest, line: Json | None) -> StreamResponse:
    """Answer with a stream of one line, or of none."""
    response = _Stream(headers=_STREAM)
    await response.prepare(request)
    if line is not None:
        await response.write(encode_line(line))
    await response.write_eof()
    return response


class LineStream:
    """An open NDJSON answer: head, heartbeats, lines.

    The head goes out with the first lines or after `head_after` seconds, preceded by
    the chunk with the retrieval facts; then, whenever `beat` seconds pass in silence,
    an empty delta, because clients give up after 60 s between bytes. One that reads
    nothing for `patience` seconds is let go.
    """

    def __init__(
        self,
        request: BaseRequest,
        *,
        beat: float = 20.0,
        head_after: float = 5.0,
        patience: float = 30.0,
    ) -> None:
        self._request = request
        self._response = _Stream(headers=_STREAM)
        self._beat = beat
        self._head_after = head_after
        self._patience = patience
        self._stuck_since: float | None = None  # in a write that waits for the client
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._last = self._clock()
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None  # of an answer that takes long

    @property
    def response(self) -> StreamResponse:
        """What the handler returns."""
        return self._response

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._head_after, self._take_care)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await self._task

    async def write(self, lines: bytes) -> None:
        """Send lines, the first ones with the head; the client sees them at once."""
        if not self._response.prepared:
            async with self._lock:
                if not self._response.prepared:
                    await self._response.prepare(self._request)
                    lines = FACTS + lines
        self._last = self._stuck_since = self._clock()
        await self._response.write(lines)
        self._stuck_since = None

    async def finish(self) -> None:
        """End the answer."""
        if not self._response.prepared:
            await self.write(b"")
        self._stuck_since = self._clock()
        await self._response.write_eof()

    def _take_care(self) -> None:
        self._task = asyncio.ensure_future(self._keep_alive())

    async def _keep_alive(self) -> None:
        while True:
            wake = min(self._beat, self._patience)
            now = self._clock()
            if not self._response.prepared:
                await self.write(b"")
            elif self._stuck_since is not None:
                if now - self._stuck_since >= self._patience:
                    self._hang_up()
            elif now - self._last >= self._beat:
                await self._beat_once()
            else:
                wake = min(wake, self._last + self._beat - now)
            await asyncio.sleep(wake)

    async def _beat_once(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self.write(HEARTBEAT)
        except TimeoutError:
            self._hang_up()

    def _hang_up(self) -> None:
        """Break the connection: the write that waits fails, the upstream is freed."""
        if self._request.transport is not None:
            self._request.transport.abort()
