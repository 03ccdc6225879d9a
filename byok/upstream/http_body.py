"""Reads the bodies of upstreams' responses: whole within a limit, or read by read."""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
)

import aiohttp
import httpx

from byok.core.errors import UpstreamGarbled, UpstreamUnreachable
from byok.core.record import current_record
from byok.core.wire.inflate import Inflate
from byok.upstream.failures import translate_errors
from byok.upstream.timeouts import Timeouts, Watch
from byok.upstream.transport import body_of

_DRAIN_SECONDS = 0.02
MAX_WHOLE = 64 * 2**20  # bytes of an answer that is passed on in one piece


async def drain(read: Callable[[], Awaitable[bytes]]) -> None:
    """Read a finished answer to its end, so that the connection can be reused."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while await read():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return  # the connection stays open, or broke: the answer is complete anyway


async def hang_up(response: httpx.Response) -> None:
    """Close a response; its connection is reused if it was read to the end."""
    try:
        await response.aclose()
    except httpx.HTTPError:
        return  # the connection broke, so it is closed


async def read_plain(
    reads: AsyncIterable[bytes], limit: int, coding: str = ""
) -> tuple[bytes, bool]:
    """Return the first `limit` bytes of a body, and whether there are more.

    A body that is encoded by the `coding` is decompressed.

    Raises:
        UpstreamGarbled: the body cannot be decompressed.
    """
    plain, inflate = bytearray(), Inflate(coding)
    async for data in reads:
        for piece in inflate.feed(data):
            plain += piece
        if len(plain) > limit:
            return bytes(plain[:limit]), True
    return bytes(plain), False


async def read_limited(
    response: httpx.Response, limit: int, *, cut: bool = False
) -> bytes:
    """Read a whole body of at most `limit` bytes; `cut` truncates a larger one.

    Raises:
        UpstreamGarbled: the body is larger, without `cut`.
    """
    coding = response.headers.get("content-encoding", "")
    raw, is_cut = await read_plain(response.aiter_raw(), limit, coding)
    if is_cut and not cut:
        raise UpstreamGarbled("its answer is too large.")
    return raw


def describing_headers(response: httpx.Response) -> dict[str, str]:
    """Return the headers of a response that a client needs to read its body."""
    names = ("content-type", "content-encoding")
    return {n: response.headers[n] for n in names if n in response.headers}


async def pass_on(
    response: httpx.Response, name: str, url: str, timeouts: Timeouts
) -> AsyncGenerator[bytes, None]:
    """Yield the reads of a response unchanged; `name` and `url` are for errors.

    Raises:
        UpstreamUnreachable: the connection broke, or a timeout was exceeded.
    """
    body = body_of(response)
    read = current_record().tap_reads(body.read)
    with Watch(timeouts, body.abort) as watch:
        try:
            with translate_errors(url):
                while data := await read():
                    watch.note_bytes(has_event=True)
                    yield data
        except UpstreamUnreachable as error:
            failure = watch.failure or error
            failure.upstream = name
            raise failure from error


async def read_to_end(reads: AsyncIterator[bytes], limit: int = MAX_WHOLE) -> bytes:
    """Join all the reads of a response.

    Raises:
        UpstreamGarbled: they have more than `limit` bytes.
    """
    raw, is_cut = await read_plain(reads, limit)
    if is_cut:
        raise UpstreamGarbled("its answer is too large.")
    return raw
