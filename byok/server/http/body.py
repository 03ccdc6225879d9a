"""Reading and parsing the body of a request, within limits of size and time."""

import asyncio
from typing import Any

from aiohttp import ClientPayloadError
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import BaseRequest, RequestPayloadError

from byok.errors import BadRequest
from byok.server.http.guard import too_large
from byok.wire.json_body import parse_body


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
        async with asyncio.timeout(in_all):
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
