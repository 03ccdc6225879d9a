"""Transports that play a capture: upstreams answer what they answered, and nobody else.

No connection is opened. A request gets the answer to that recorded request of the same
path whose body was about as long; others are answered with 404.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import aiohttp
import httpx

from byok.core.errors import UpstreamUnreachable
from byok.core.record import Hop
from byok.features.capture.capture import Capture
from byok.upstream.transport import Body, Route, Transports

_DROPPED = ("content-encoding", "content-length", "transfer-encoding")


class RecordedAnswer(NamedTuple):
    """What an upstream answered to a request of this path and length of its body."""

    path: str
    length: int
    status: int
    headers: tuple[tuple[str, str], ...]
    reads: tuple[bytes, ...]
    is_broken: bool = False  # the connection was lost in its middle


class PlaybackTransports(Transports):
    """Transports of one capture; for one replay."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._transport = _Player([_read_attempt(capture, n) for n in capture.attempts])

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        """Return the one that plays, whatever the route."""
        del route
        return self._transport


def _read_attempt(capture: Capture, attempt: int) -> RecordedAnswer:
    asked = capture.head(Hop.TO_UPSTREAM, attempt)
    answer = capture.head(Hop.FROM_UPSTREAM, attempt)
    reads = tuple(
        piece.text.encode()
        for piece in capture.pieces
        if (piece.hop, piece.attempt) == (Hop.FROM_UPSTREAM, attempt) and piece.text
    )
    headers = [] if answer is None else [*answer.headers]
    return RecordedAnswer(
        "" if asked is None else _path(asked.line.partition(" ")[2]),
        len(capture.text(Hop.TO_UPSTREAM, attempt)),
        0 if answer is None else int(answer.line),
        tuple((n, v) for n, v in headers if n.lower() not in _DROPPED),
        reads,
        capture.facts.get("error_class") == UpstreamUnreachable.__name__
        and attempt == max(capture.attempts),
    )


def _path(url: str) -> str:
    """Return the path of an address, whose user may have been removed."""
    rest = url.partition("://")[2].partition("?")[0]
    return "/" + rest.partition("/")[2]


class _Player(httpx.AsyncBaseTransport):
    def __init__(self, answers: Sequence[RecordedAnswer]) -> None:
        self._answers = list(answers)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer as it was recorded; each answer is given once."""
        path, length = request.url.path, len(request.content)
        fits = [one for one in self._answers if one.path == path]
        if request.method != "POST" or not fits:
            return httpx.Response(404, stream=_PlayedBody((b"{}",)))
        chosen = min(fits, key=lambda one: abs(one.length - length))
        self._answers.remove(chosen)
        if not chosen.status:
            raise httpx.ConnectError("there was no answer", request=request)
        headers = httpx.Headers(list(chosen.headers))
        coding = headers.get("Content-Encoding", "")
        body = _PlayedBody(chosen.reads, coding, is_broken=chosen.is_broken)
        return httpx.Response(chosen.status, headers=headers, stream=body)


class _PlayedBody(Body):
    def __init__(
        self, reads: Sequence[bytes], coding: str = "", *, is_broken: bool = False
    ) -> None:
        self._reads = list(reads)
        self._coding = coding
        self._is_broken = is_broken

    async def read(self) -> bytes:
        """Return the next read."""
        await asyncio.sleep(0)
        if self._is_broken and not self._reads:
            raise aiohttp.ClientConnectionError("Connection lost")
        return self._reads.pop(0) if self._reads else b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    @property
    def coding(self) -> str:
        """How it is compressed."""
        return self._coding

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read completely."""
        return not self._reads

    def abort(self) -> None:
        """Give nothing more."""
        self._reads.clear()

    async def aclose(self) -> None:
        """Give nothing more."""
        self._reads.clear()
