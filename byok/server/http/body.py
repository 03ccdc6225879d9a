"""Reading and parsing the body of a request, within limits of size and time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from byok.core.errors import BadRequest
from byok.core.threads import Runner, inline
from byok.core.wire.json_body import parse_body
from byok.server.http.guard import too_large


async def read_body(
    request: BaseRequest, limit: int, gap: float = 15.0, in_all: float | None = None
) -> bytes:
    """Return the body's bytes.

    Raises:
        BadRequest: too large, cut, silent for `gap` seconds, or not there `in_all`.
    """
    if "Expect" in request.headers:  # its value was checked by the guard
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(in_all) if in_all else nullcontext():
            while piece := await _next(request, gap):
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                pieces.append(piece)
    except TimeoutError as error:
        raise BadRequest(
            "The body did not arrive in time.", code="body_timeout", status=408
        ) from error
    except (ClientPayloadError, RequestPayloadError, HttpProcessingError) as error:
        message = "The body is incomplete or malformed."
        raise BadRequest(message, code="bad_http") from error
    return b"".join(pieces)


def parse_request(raw: bytes) -> dict[str, Any]:
    """Return the body's object; an empty body is `{}`.

    Raises:
        BadRequest: it is no JSON object, or none that can be read.
    """
    body = parse_body(raw)
    if "encrypted_data" in body and "iv" in body:
        raise BadRequest(
            "An encrypted body cannot be read.", code="UNSUPPORTED_WRAPPER_PAYLOAD"
        )
    return body


async def _next(request: BaseRequest, gap: float) -> bytes:
    """Return the next piece, b"" at the end."""
    piece: bytes = request.content.read_nowait()
    if piece or request.content.at_eof():
        return piece  # as nearly always: it came with the head
    async with asyncio.timeout(gap):
        piece = await request.content.readany()
    return piece


# Large bodies: two at a time, parsed in a thread.
#
# A conversation of tens of megabytes takes seconds to read and ten times its size in
# memory while that goes on. Meanwhile every other client is to be answered at once.


LARGE = 2**20  # bytes
_AT_ONCE = 2


class LargeBodies:
    """Admits small bodies at once and large ones two at a time."""

    def __init__(self, large: int = LARGE, at_once: int = _AT_ONCE) -> None:
        self._large = large
        self._rooms = asyncio.Semaphore(at_once)

    def room(self, length: int | None) -> AbstractAsyncContextManager[Runner]:
        """Hold a place while a body of this length is read and understood.

        `length` is None where a client does not tell it.
        """
        if length is not None and length < self._large:
            return _AT_ONCE_HERE
        return self._wait_for_room()

    @asynccontextmanager
    async def _wait_for_room(self) -> AsyncIterator[Runner]:
        async with self._rooms:
            yield asyncio.to_thread


_AT_ONCE_HERE: AbstractAsyncContextManager[Runner] = nullcontext(inline)
