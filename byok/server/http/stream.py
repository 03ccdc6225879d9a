"""Streamed responses: bytes as they come, and NDJSON lines with heartbeats.

Errors. Once the head is sent, the status 200 is final. So the head waits for the first
lines, and until then an error can still become an HTTP status. After `head_after`
seconds it is sent with the line of retrieval facts, long before a client times out, or
after `late_head_after` if the failure of an answer must not look like an answer.

Silence. Clients close a stream after 60 seconds without a byte, and a model may think
for minutes. `beat` seconds after the last write a heartbeat is sent: an empty delta,
which adds nothing for any known client. The heartbeat task is started by a timer, so
that a quick answer has no task at all.

Clients that do not read. A write waits when the client's window is full, and the
upstream waits with it, until the connection is given up (`http/protocol.py`).

Packets. `_send_headers_immediately` delays the head until the first bytes; the last
bytes are sent with the end. Sent separately, small packets wait for each other (Nagle's
algorithm and delayed acknowledgements), which can cost 40 ms. For the same reason
callers join all lines of one network read into one `write`.

Two writers. The heartbeat task and the answer may both begin the response without a
conflict: preparing it does not wait for anything, and whoever comes first does it.
Later a heartbeat is sent only while no other write is in progress; each write consists
of whole lines.

An answer that must not look complete is ended by `break_off`, without the last chunk of
HTTP: a partial file edit that looks complete would delete code.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Self

from aiohttp.web_response import StreamResponse

from byok.core.chat import Json
from byok.core.record import Hop
from byok.core.wire.json_lines import encode_line
from byok.server.http.deadlines import Timing
from byok.server.http.reply import BASE_HEADERS, HttpExchange, id_headers

LINE_HEADERS = {
    **BASE_HEADERS,
    "Content-Type": "application/x-ndjson; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
EVENT_HEADERS = {**LINE_HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}


class _Response(StreamResponse):
    """A stream whose head is sent in one packet with its first bytes."""

    _send_headers_immediately = False


async def static_stream(exchange: HttpExchange, *lines: Json) -> StreamResponse:
    """Answer with a stream whose lines are known."""
    stream = OpenStream(exchange, LINE_HEADERS)
    await stream.finish(b"".join(map(encode_line, lines)))
    return stream.response


class OpenStream:
    """An open response: bytes are sent as they are written, after the `first` ones."""

    def __init__(
        self,
        exchange: HttpExchange,
        headers: Mapping[str, str],
        *,
        status: int = 200,
        first: bytes = b"",
    ) -> None:
        self._request = exchange.request
        self._tap = exchange.record.tap
        all_headers = {**headers, **id_headers(exchange.request_id)}
        self.response = _Response(status=status, headers=all_headers)
        self._first = first
        self._clock = asyncio.get_running_loop().time
        self._last_write = self._clock()

    async def write(self, data: bytes) -> None:
        """Send bytes at once, the first time together with the head."""
        if not self.response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        self._last_write = self._clock()
        await self.response.write(data)

    async def finish(self, data: bytes = b"") -> None:
        """End the answer; its last bytes and the end are sent in one packet."""
        if not self.response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        await self.response.write_eof(data)

    async def break_off(self, data: bytes) -> None:
        """Send bytes and close the connection without the end of a complete body."""
        await self.write(data)
        if self._request.transport is not None:
            self._request.transport.close()  # sends no last chunk

    async def _prepare(self, data: bytes) -> bytes:
        """Prepare the head; return the bytes to send with it."""
        await self.response.prepare(self._request)
        return self._first + data

    def hang_up(self) -> None:
        """Abort the connection: the pending write fails, which frees the upstream."""
        if self._request.transport is not None:
            self._request.transport.abort()


class LineStream(OpenStream):
    """An open response with heartbeats; `heartbeat` may be b"" for none.

    After `keep_alive`, the head is sent with the first lines or after `head_after`
    seconds, with `first` behind it; then a heartbeat after each `beat` seconds of
    silence, because clients give up after 60 s between bytes. Until the head is sent,
    an error can become an HTTP status: if the stream `is_late`, for as long as clients
    wait for a first byte.
    """

    def __init__(
        self,
        exchange: HttpExchange,
        headers: Mapping[str, str],
        timing: Timing,
        *,
        first: bytes,
        heartbeat: bytes,
        is_late: bool,
    ) -> None:
        super().__init__(exchange, headers, first=first)
        self._heartbeat = heartbeat
        self._interval = timing.beat
        self._head_after = timing.late_head_after if is_late else timing.head_after
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None  # of an answer that takes long

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await self._task

    def keep_alive(self) -> None:
        """Send the head and heartbeats in time from now on."""

        def start() -> None:
            self._task = asyncio.ensure_future(self._keep_alive())

        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._head_after, start)

    async def _keep_alive(self) -> None:
        while True:
            silence = self._clock() - self._last_write
            is_blocked = self._request.protocol.writing_paused
            if not self.response.prepared:
                await self.write(b"")
            elif not self._heartbeat:
                return
            elif silence >= self._interval and not is_blocked:
                await self.write(self._heartbeat)
            else:
                await asyncio.sleep(self._interval - (0 if is_blocked else silence))
