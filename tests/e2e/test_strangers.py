"""Processes without the token hold connections; who has the token is served at once."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

import pytest

from byok.server.http.deadlines import Timing
from tests.fakes.daemon import Editor, running
from tests.fakes.patience import PATIENCE
from tests.fakes.raw import RawConnection, ask, connected, filled, request

PLACES = 64
FEW = {"limits": {"connections": PLACES}}
HEALTH = request(
    method=b"GET", target=b"/health", token=b"", kind=b"", length=b"", body=b""
)
NONCE = b'{"nonce": "0123456789abcdef"}'
CHALLENGE = request(target=b"/health/challenge", token=b"", body=NONCE)
DRIPPED = CHALLENGE.removesuffix(NONCE[1:])
HALF_A_HEAD = b"POST /chat HTTP/1.1\r\nHost: HOST\r\nX-Half"
REFUSED = {
    401: request(token=b""),
    403: request(b"Origin: https://evil.example"),
    421: request(host=b"Host: evil.example"),
}


@asynccontextmanager
async def crowd(editor: Editor, data: bytes) -> AsyncIterator[list[RawConnection]]:
    """Take every place there is, and send the same on each."""
    port = editor.daemon.port
    async with AsyncExitStack() as stack:
        held = []
        for _ in range(PLACES):
            connection = await stack.enter_async_context(connected(port))
            await connection.send(filled(data, port, editor.token))
            held.append(connection)
        yield held


async def check_served(editor: Editor, times: int = 8) -> None:
    """The user is answered on new connections, and on one that stays open."""
    port = editor.daemon.port
    asked = filled(request(target=b"/find-missing"), port, editor.token)
    async with connected(port) as kept:
        for _ in range(times):
            assert (await (await kept.send(asked)).answer()).status == 200
            assert (await ask(port, asked)).status == 200


@pytest.mark.parametrize("status", REFUSED)
@pytest.mark.case("B111")
async def test_who_is_refused_is_closed_and_keeps_no_place(status: int) -> None:
    async with (
        running(FEW, upstream="demo") as editor,
        crowd(editor, REFUSED[status]) as refused,
    ):
        for connection in refused:
            assert (await connection.answer()).status == status
            assert await connection.rest() == b""
        await check_served(editor)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(HEALTH, 200, id="health"),
        pytest.param(CHALLENGE, 200, id="challenge"),
        pytest.param(CHALLENGE.replace(b"nonce", b"other"), 422, id="no-nonce"),
        pytest.param(HEALTH * 40, 200, id="pipelined"),
    ],
)
@pytest.mark.case("B111")
async def test_who_was_answered_without_a_token_makes_room(
    data: bytes, status: int
) -> None:
    async with running(FEW, upstream="demo") as editor, crowd(editor, data) as answered:
        for connection in answered:
            assert (await connection.answer()).status == status
        await check_served(editor)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(DRIPPED, id="challenge"),
        pytest.param(HALF_A_HEAD, id="half-a-head"),
        pytest.param(HEALTH + HALF_A_HEAD, id="half-a-second-head"),
        pytest.param(HEALTH + DRIPPED, id="challenge-behind-an-answer"),
        pytest.param(b"", id="nothing"),
    ],
)
@pytest.mark.case("B111")
async def test_who_says_half_of_something_makes_room(data: bytes) -> None:
    async with running(FEW, upstream="demo") as editor, crowd(editor, data):
        await check_served(editor)


@pytest.mark.case("B111")
async def test_a_challenge_that_drips_is_closed_after_its_time_in_all() -> None:
    timing = Timing(challenge=0.3, body_gap=60)
    async with (
        running(FEW, upstream="demo", timing=timing) as editor,
        connected(editor.daemon.port) as connection,
    ):
        await connection.send(filled(DRIPPED, editor.daemon.port, ""))
        answered = asyncio.ensure_future(connection.answer())
        while not answered.done():
            await connection.send(b" ")
            await asyncio.wait([answered], timeout=0.05)
        assert (await answered).code == "body_timeout"
        assert await connection.rest() == b""


@asynccontextmanager
async def flooded(editor: Editor, data: bytes) -> AsyncIterator[set[RawConnection]]:
    """Connect and send without end, and never leave; give the connections so far."""
    port = editor.daemon.port
    opened: set[RawConnection] = set()

    async def connect() -> None:
        async with AsyncExitStack() as stack:
            while True:
                with contextlib.suppress(ConnectionError):
                    connection = await stack.enter_async_context(connected(port))
                    opened.add(await connection.send(filled(data, port, editor.token)))

    tasks = [asyncio.ensure_future(connect()) for _ in range(8)]
    try:
        yield opened
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HEALTH, id="answered"),
        pytest.param(REFUSED[401], id="refused"),
        pytest.param(DRIPPED, id="dripped"),
    ],
)
@pytest.mark.case("B111")
async def test_who_connects_again_and_again_keeps_nobody_out(data: bytes) -> None:
    async with running(FEW, upstream="demo") as editor, flooded(editor, data) as opened:
        async with asyncio.timeout(PATIENCE):
            while len(opened) <= PLACES:
                await check_served(editor, 1)
        await check_served(editor)


@pytest.mark.case("B111")
async def test_who_came_first_is_read_before_a_flood_behind_takes_the_place() -> None:
    async with running(FEW, upstream="demo") as editor:
        port = editor.daemon.port
        with ExitStack() as stack:
            sockets = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                for _ in range(121)  # the daemon has not run since the first
            ]
            right = filled(request(target=b"/find-missing"), port, editor.token)
            sockets[0].sendall(right)
            reader, writer = await asyncio.open_connection(sock=sockets[0].dup())
            assert (await RawConnection(reader, writer).answer()).status == 200
            writer.close()


@pytest.mark.case("B111")
async def test_a_token_that_is_refused_later_gives_the_place_back() -> None:
    async with running(FEW, upstream="demo") as editor:
        port = editor.daemon.port
        right = filled(request(), port, editor.token)
        async with connected(port) as connection:
            assert (await (await connection.send(right)).answer()).status == 200
            wrong = filled(request(), port, "another-token-of-nobody")
            assert (await (await connection.send(wrong)).answer()).status == 401
            assert await connection.rest() == b""
