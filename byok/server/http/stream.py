"""Streamed responses: bytes as they come, and NDJSON lines with heartbeats.

Errors. Once the head is out, the status is 200 for good. So the head waits for the
first lines, and until then an error can still become an HTTP status. After `head_after`
seconds it leaves with the line of retrieval facts, long before a client times out, or
after `late_head_after` where the failure of an answer must not look like an answer.

Silence. Clients close a stream after 60 seconds without a byte, and a model may think
for minutes. `beat` seconds after the last write a heartbeat is sent: an empty delta,
which adds nothing for any known client. The heartbeat task is started by a timer, so
that a quick answer has no task at all.

Clients that do not read. A write waits when the client's window is full, and the
upstream waits with it, until the connection is given up (`http/protocol.py`).

Packets. The head is held back by `_send_headers_immediately` and leaves with the first
bytes; the last bytes leave with the end. Sent apart, small packets wait for each other
(Nagle's algorithm and delayed acknowledgements), which can cost 40 ms. For the same
reason callers join all lines of one network read into one `write`.

Two writers. The heartbeat task and the answer may both begin the response, and do not
disturb each other: to prepare it waits for nothing, and the first one does it. Later a
heartbeat is only sent while no other write is under way; each write is a whole line.

An answer that must not be taken for a complete one is ended by `break_off`, without the
last chunk of HTTP: a partial file edit that looks complete would delete code.
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
from byok.server.http.reply import COMMON, HttpExchange, id_headers

LINES = {
    **COMMON,
    "Content-Type": "application/x-ndjson; charset=utf-8",
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
}
EVENTS = {**LINES, "Content-Type": "text/event-stream; charset=utf-8"}


class _Response(StreamResponse):
    """A stream whose head leaves in one packet with its first bytes."""

    _send_headers_immediately = False


async def static_stream(exchange: HttpExchange, *lines: Json) -> StreamResponse:
    """Answer with a stream whose lines are known."""
    stream = OpenStream(exchange, LINES)
    await stream.finish(b"".join(map(encode_line, lines)))
    return stream.response


class OpenStream:
    """An open response, whose bytes are sent as they come, after the `first` ones."""

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
        named = {**headers, **id_headers(exchange.request_id)}
        self._response = _Response(status=status, headers=named)
        self._first = first
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()

    @property
    def response(self) -> StreamResponse:
        """What the handler returns."""
        return self._response

    async def write(self, data: bytes) -> None:
        """Send bytes, the first ones with the head; the client sees them at once."""
        if not self._response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        self._last = self._clock()
        await self._response.write(data)

    async def finish(self, data: bytes = b"") -> None:
        """End the answer; its last bytes and the end leave in one packet."""
        if not self._response.prepared:
            data = await self._prepare(data)
        if self._tap is not None:
            self._tap(Hop.TO_CLIENT, data)
        await self._response.write_eof(data)

    async def break_off(self, data: bytes) -> None:
        """Close the connection without an end of the body: the answer is broken."""
        await self.write(data)
        if self._request.transport is not None:
            self._request.transport.close()  # without the mark of the end

    async def _prepare(self, data: bytes) -> bytes:
        """Prepare the head; return what goes out with it."""
        await self._response.prepare(self._request)
        return self._first + data

    def hang_up(self) -> None:
        """Abort the connection: the pending write fails, the upstream is released."""
        if self._request.transport is not None:
            self._request.transport.abort()


class LineStream(OpenStream):
    """An open response with heartbeats, which may be b"" for none.

    Once it is kept alive, the head goes out with the first lines or after `head_after`
    seconds of its timing, behind `first`; then a heartbeat, whenever `beat` seconds
    pass in silence, because clients give up after 60 s between bytes. Before, an error
    can still become an HTTP status: if it `is_late`, as long as clients wait for a
    first byte.
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
        self._beat = timing.beat
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
        """Start to send the head and heartbeats in time."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._head_after, self._take_care)

    def _take_care(self) -> None:
        self._task = asyncio.ensure_future(self._keep_alive())

    async def _keep_alive(self) -> None:
        while True:
            silence = self._clock() - self._last
            stuck = self._request.protocol.writing_paused
            if not self._response.prepared:
                await self.write(b"")
            elif not self._heartbeat:
                return
            elif silence >= self._beat and not stuck:
                await self.write(self._heartbeat)
            else:
                await asyncio.sleep(self._beat if stuck else self._beat - silence)
