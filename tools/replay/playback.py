"""Transports that replay a capture: requests get the recorded answers of upstreams.

No connection is opened. A request gets the answer to the recorded request of the same
path whose body has the nearest length; without one, the status is 404.
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
    """A recorded answer, and the path and body length of its request."""

    path: str
    length: int
    status: int
    headers: tuple[tuple[str, str], ...]
    reads: tuple[bytes, ...]
    is_broken: bool = False  # the connection was lost in the middle


class PlaybackTransports(Transports):
    """The transports of one capture, for one replay."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._transport = _ReplayTransport(
            [_read_attempt(capture, n) for n in capture.attempts]
        )

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        """Return the replaying transport for every route."""
        del route
        return self._transport


def _read_attempt(capture: Capture, attempt: int) -> RecordedAnswer:
    request = capture.head(Hop.TO_UPSTREAM, attempt)
    answer = capture.head(Hop.FROM_UPSTREAM, attempt)
    reads = tuple(
        piece.text.encode()
        for piece in capture.pieces
        if (piece.hop, piece.attempt) == (Hop.FROM_UPSTREAM, attempt) and piece.text
    )
    headers = [] if answer is None else [*answer.headers]
    return RecordedAnswer(
        "" if request is None else _path(request.line.partition(" ")[2]),
        len(capture.text(Hop.TO_UPSTREAM, attempt)),
        0 if answer is None else int(answer.line),
        tuple((n, v) for n, v in headers if n.lower() not in _DROPPED),
        reads,
        capture.facts.get("error_class") == UpstreamUnreachable.__name__
        and attempt == max(capture.attempts),
    )


def _path(url: str) -> str:
    """Return the path of a URL."""
    without_scheme = url.partition("://")[2].partition("?")[0]
    return "/" + without_scheme.partition("/")[2]


class _ReplayTransport(httpx.AsyncBaseTransport):
    def __init__(self, answers: Sequence[RecordedAnswer]) -> None:
        self._answers = list(answers)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return a recorded answer; each is used once."""
        path, length = request.url.path, len(request.content)
        candidates = [answer for answer in self._answers if answer.path == path]
        if request.method != "POST" or not candidates:
            return httpx.Response(404, stream=_ReplayedBody((b"{}",)))
        nearest = min(candidates, key=lambda answer: abs(answer.length - length))
        self._answers.remove(nearest)
        if not nearest.status:
            raise httpx.ConnectError("there was no answer", request=request)
        headers = httpx.Headers(list(nearest.headers))
        coding = headers.get("Content-Encoding", "")
        body = _ReplayedBody(nearest.reads, coding, is_broken=nearest.is_broken)
        return httpx.Response(nearest.status, headers=headers, stream=body)


class _ReplayedBody(Body):
    def __init__(
        self, reads: Sequence[bytes], coding: str = "", *, is_broken: bool = False
    ) -> None:
        self._reads = list(reads)
        self._coding = coding
        self._is_broken = is_broken

    async def read(self) -> bytes:
        """Return the bytes of the next recorded read."""
        await asyncio.sleep(0)
        if self._is_broken and not self._reads:
            raise aiohttp.ClientConnectionError("Connection lost")
        return self._reads.pop(0) if self._reads else b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    @property
    def coding(self) -> str:
        """The content coding."""
        return self._coding

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read completely."""
        return not self._reads

    def abort(self) -> None:
        """Discard the remaining reads."""
        self._reads.clear()

    async def aclose(self) -> None:
        """Discard the remaining reads."""
        self._reads.clear()
