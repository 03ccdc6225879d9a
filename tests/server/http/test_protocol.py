"""aiohttp's server in byok's words: limits that hold, faults that tell nothing."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.server.http.protocol import HttpServer, note_token, serve_http
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import ask, check_answer, connected

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
KNOWN = GET.replace(b"/ ", b"/known ", 1)


class Handler:
    """Answers 200, or fails; tells when it was cancelled. /known shows the token."""

    def __init__(
        self,
        failure: Exception | None = None,
        *,
        waits: bool = False,
        reads: bool = False,
    ):
        self.failure = failure
        self.waits = waits
        self.reads = reads
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        self.begun.set()
        if request.path == "/known":
            note_token(request)
        try:
            if self.waits:
                await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.failure is not None:
            raise self.failure
        return Response(body=await request.read() if self.reads else request.path)


@asynccontextmanager
async def running(
    handler: Handler, connections: int = 8
) -> AsyncIterator[tuple[HttpServer, int]]:
    """Serve on a free port; give the server and the port."""
    http = HttpServer(handler, connections)
    server = await asyncio.get_running_loop().create_server(http, "127.0.0.1", 0)
    try:
        yield http, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await http.shutdown(1)


@asynccontextmanager
async def serving(handler: Handler, connections: int = 8) -> AsyncIterator[int]:
    """Serve on a free port."""
    async with running(handler, connections) as (_, port):
        yield port


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nAuthorization: Bearer a-canary\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\na-canary\r\n\r\n",
        b"GET /a-canary HTTP/9.9\r\n\r\n",
        b"a-canary\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-A: a-canary\r\n" + b"X: 1\r\n" * 80 + b"\r\n",
        b"GET /a-canary" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
    ],
)
async def test_http_protocol_neither_echoes_nor_logs_invalid_http(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Handler()) as port, connected(port) as connection:
        answer = await (await connection.send(head)).answer()
        assert (answer.status, answer.code) == (400, "bad_http")
        check_answer(answer)
        assert await connection.rest() == b""
    assert b"a-canary" not in answer.body
    assert "a-canary" not in caplog.text


@pytest.mark.case("F17")
async def test_connection_limit_refuses_one_more_where_all_are_authenticated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(Handler(), 2) as port:
        async with connected(port) as one, connected(port) as two:
            for connection in (one, two):
                await (await connection.send(KNOWN)).answer()
            for _ in range(3):
                async with connected(port) as third:
                    assert await third.rest() == b""
            assert (await (await one.send(KNOWN)).answer()).status == 200
        assert caplog.text.count("connections are open") == 1
        async with connected(port) as again:
            assert (await (await again.send(KNOWN)).answer()).status == 200


@pytest.mark.case("B111")
async def test_connection_limit_closes_the_oldest_without_the_token() -> None:
    async with (
        serving(Handler(), 3) as port,
        connected(port) as known,
        connected(port) as oldest,
        connected(port) as younger,
    ):
        for connection in (known, oldest, younger):
            await (
                await connection.send(KNOWN if connection is known else GET)
            ).answer()
        async with connected(port) as asking:
            assert (await (await asking.send(GET)).answer()).status == 200
        assert await oldest.rest() == b""
        for connection in (younger, known):
            assert (await (await connection.send(GET)).answer()).status == 200


@pytest.mark.case("B111")
async def test_connection_limit_closes_clients_that_read_no_answer() -> None:
    async with serving(Handler(), 1) as port, connected(port) as deaf:
        await deaf.send(GET * 20)
        assert (await ask(port, GET)).status == 200


@pytest.mark.case("F70")
@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_is_served_or_left_whenever_a_server_accepts_no_more(
    turns: int,
) -> None:
    """It is made, and accepted some turns of the loop later, or not at all."""
    http = HttpServer(Handler(), 8)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        listening.dup() as successor,
        socket.socket() as client,
    ):
        listening.setblocking(False)
        async with serve_http(http, [listening], 1) as accept_no_more:
            client.connect(listening.getsockname())
            for _ in range(turns):
                await asyncio.sleep(0)
            await accept_no_more()
            http.end_connections()
            client.settimeout(PATIENCE)
            try:
                left, _ = successor.accept()
            except BlockingIOError:
                client.sendall(GET)
                got = await asyncio.to_thread(client.recv, 12)
                assert got == b"HTTP/1.1 200"
            else:
                left.close()


@pytest.mark.case("F70")
@pytest.mark.parametrize("turns", range(6))
async def test_a_request_that_has_come_is_answered_when_connections_end(
    turns: int,
) -> None:
    """Its connection was used before, and is not idle any more."""
    async with running(Handler()) as (http, port), connected(port) as connection:
        await (await connection.send(GET)).answer()
        await connection.send(GET)
        for _ in range(turns):
            await asyncio.sleep(0)
        http.end_connections()
        assert (await connection.answer()).status == 200
        assert await connection.rest() == b""


@pytest.mark.case("F70")
async def test_a_body_is_read_to_its_end_when_connections_end() -> None:
    handler = Handler(reads=True)
    async with running(handler) as (http, port), connected(port) as connection:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
        await connection.send(head + b"ab")
        await asyncio.wait_for(handler.begun.wait(), PATIENCE)
        http.end_connections()
        await connection.send(b"cd")
        assert (await connection.answer()).body == b"abcd"
        assert await connection.rest() == b""
