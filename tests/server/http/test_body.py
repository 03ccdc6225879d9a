"""Reading a request's body within its limit."""

import asyncio
import threading

import pytest
from aiohttp import ClientPayloadError, StreamReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest

from byok.core.errors import BadRequest
from byok.server.http.body import LargeBodies, parse_request, read_body
from tests.fakes.patience import PATIENCE


def posted(
    *pieces: bytes, ends: bool = True, error: Exception | None = None
) -> BaseRequest:
    """Make a request whose body comes in pieces, and perhaps never ends."""
    loop = asyncio.get_running_loop()
    content = StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    for piece in pieces:
        content.feed_data(piece)
    if error is not None:
        content.set_exception(error)
    elif ends:
        content.feed_eof()
    return make_mocked_request("POST", "/chat", payload=content)


async def test_body_reading_stops_at_the_size_limit() -> None:
    endless = posted(b"{}", b" " * 9, ends=False)
    with pytest.raises(BadRequest) as caught:
        await asyncio.wait_for(read_body(endless, 10), PATIENCE)
    assert (caught.value.status, caught.value.code) == (413, "body_too_large")


async def test_a_body_that_breaks_off_is_a_bad_request() -> None:
    cut = posted(b'{"a', error=ClientPayloadError("secret words"))
    with pytest.raises(BadRequest) as caught:
        await read_body(cut, 100)
    assert (caught.value.status, caught.value.code) == (400, "bad_http")
    assert "secret" not in caught.value.sentence


def test_an_encrypted_body_is_refused_by_its_own_code() -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request(b'{"encrypted_data": "x", "iv": "y"}')
    assert caught.value.code == "UNSUPPORTED_WRAPPER_PAYLOAD"


@pytest.mark.parametrize(("size", "here"), [(9, True), (10, False), (None, False)])
async def test_only_a_small_body_is_understood_in_the_event_loop(
    size: int | None, *, here: bool
) -> None:
    async with LargeBodies(large=10, at_once=1).slot(size) as run:
        assert (await run(threading.get_ident) == threading.get_ident()) is here


async def test_large_bodies_are_parsed_a_few_at_once() -> None:
    bodies = LargeBodies(large=10, at_once=2)
    inside = most = 0

    async def one() -> None:
        nonlocal inside, most
        async with bodies.slot(99):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(10)))
    assert (most, inside) == (2, 0)
