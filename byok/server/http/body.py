"""Reading and parsing the body of a request, within limits of size and time.

A conversation of tens of megabytes takes seconds to parse, and ten times its size in
memory meanwhile. So large bodies are parsed in a thread, two at a time: every other
client is still answered at once.
"""

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
from byok.server.http.guard import Guard, too_large

LARGE = 2**20  # bytes
_MAX_AT_ONCE = 2
_RUN_INLINE: AbstractAsyncContextManager[Runner] = nullcontext(inline)


async def read_body(
    request: BaseRequest, limit: int, gap: float = 15.0, total: float | None = None
) -> bytes:
    """Return the body's bytes.

    Raises:
        BadRequest: the body is too large, incomplete, silent for `gap` seconds, or
            not complete after `total` seconds.
    """
    if "Expect" in request.headers:  # its value was checked by the guard
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(total) if total else nullcontext():
            while piece := await _read_piece(request, gap):
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


async def read_object(
    guard: Guard,
    request: BaseRequest,
    limit: int,
    gap: float,
    total: float | None = None,
) -> dict[str, Any]:
    """Check length and type of a small body, and return its object, as `read_body`.

    Raises:
        BadRequest: as `read_body` and `parse_request`, or for length or type.
    """
    guard.check_length(request, limit)
    guard.check_content(request.headers)
    return parse_request(await read_body(request, limit, gap, total))


def parse_request(raw: bytes) -> dict[str, Any]:
    """Return the body's object; an empty body is `{}`.

    Raises:
        BadRequest: the body is not a JSON object, exceeds a limit, or is encrypted.
    """
    body = parse_body(raw)
    if "encrypted_data" in body and "iv" in body:
        raise BadRequest(
            "An encrypted body cannot be read.", code="UNSUPPORTED_WRAPPER_PAYLOAD"
        )
    return body


async def _read_piece(request: BaseRequest, gap: float) -> bytes:
    """Return the next piece of the body, b"" at the end."""
    piece: bytes = request.content.read_nowait()
    if piece or request.content.at_eof():
        return piece  # nearly always, because it arrived with the head
    async with asyncio.timeout(gap):
        piece = await request.content.readany()
    return piece


class LargeBodies:
    """Admits small bodies at once and large ones two at a time."""

    def __init__(self, large: int = LARGE, at_once: int = _MAX_AT_ONCE) -> None:
        self._large = large
        self._slots = asyncio.Semaphore(at_once)

    def slot(self, length: int | None) -> AbstractAsyncContextManager[Runner]:
        """Hold a slot while a body of this length is read and decoded.

        `length` is None if the client does not send it. The result of `async with`
        runs functions: in a thread for large bodies, else inline.
        """
        if length is not None and length < self._large:
            return _RUN_INLINE
        return self._wait_for_slot()

    @asynccontextmanager
    async def _wait_for_slot(self) -> AsyncIterator[Runner]:
        async with self._slots:
            yield asyncio.to_thread
