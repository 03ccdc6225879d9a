"""Two pipes as the streams of the SDK's server, and the lines on them."""

import asyncio
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from byok.cli.mcp_server import (
    Descriptors,
    Incoming,
    Outgoing,
    decode,
    encode,
    read_line,
    streams,
)
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'


class Client:
    """The other ends of the pipes."""

    def __init__(self) -> None:
        source, self.write_end = os.pipe()
        self.read_end, sink = os.pipe()
        self.own = Descriptors(source, sink)
        self.ended = 0
        self._open = [source, self.write_end, self.read_end, sink]

    def send(self, data: bytes) -> None:
        os.write(self.write_end, data)

    def shut(self, end: int) -> None:
        self._open.remove(end)
        os.close(end)

    async def received(self) -> object:
        data = await asyncio.to_thread(os.read, self.read_end, 65536)
        return json.loads(data)

    def end(self) -> None:
        self.ended += 1

    def close(self) -> None:
        for end in list(self._open):
            self.shut(end)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Client, Incoming, Outgoing]]:
    client = Client()
    try:
        async with (
            asyncio.timeout(PATIENCE),
            streams(client.own, client.end) as (incoming, outgoing),
        ):
            yield client, incoming, outgoing
    finally:
        if client.write_end in client._open:
            client.shut(client.write_end)  # lets the reading thread end
        for thread in threading.enumerate():
            if thread.name == "stdin":
                await asyncio.to_thread(thread.join, PATIENCE)
        client.close()


async def test_mcp_stdio_messages_go_in_and_out() -> None:
    async with connected() as (client, incoming, outgoing):
        client.send(PING % 1 + (PING % 2)[:9])
        first = await incoming.receive()
        client.send((PING % 2)[9:])
        second = await incoming.receive()
        for item, id in ((first, 1), (second, 2)):
            assert isinstance(item, SessionMessage)
            assert isinstance(item.message, JSONRPCRequest)
            assert item.message.id == id
        reply = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "ä\n"})
        await outgoing.send(SessionMessage(reply))
        told = {"jsonrpc": "2.0", "id": 1, "result": {"text": "ä\n"}}
        assert await client.received() == told


@pytest.mark.case("B83")
async def test_mcp_stdio_end_of_input_ends_even_within_a_message() -> None:
    async with connected() as (client, incoming, _):
        client.send(PING % 1 + b'{"half')
        client.shut(client.write_end)
        assert len([item async for item in incoming]) == 1
    assert client.ended


@pytest.mark.case("B83")
async def test_mcp_stdio_client_that_stops_reading_ends_it() -> None:
    async with connected() as (client, incoming, outgoing):
        client.shut(client.read_end)
        reply = JSONRPCResponse(jsonrpc="2.0", id=1, result={})
        await outgoing.send(SessionMessage(reply))
        assert [item async for item in incoming] == []
        assert client.ended


def test_mcp_stdio_is_kept_from_prints_and_reads_of_other_code() -> None:
    script = (
        "import os, sys, subprocess\n"
        "from byok.cli.mcp_server import take_over\n"
        "own = take_over()\n"
        "print('printed', flush=True)\n"
        "subprocess.run([sys.executable, '-c', 'print(input())'], check=False)\n"
        "os.write(own.sink, os.read(own.source, 99))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"message\n",
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout == b"message\n"
    assert b"printed" in done.stderr
    assert b"EOFError" in done.stderr


def test_of_a_line_that_is_too_long_only_that_is_told() -> None:
    file = io.BytesIO(b"1234\n0123456789\n" + b"x" * 25 + b"\n56\n\nrest")
    found = [read_line(file, 10) for _ in range(6)]
    assert found == [b"1234\n", b"0123456789\n", None, b"56\n", b"\n", b""]


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (None, -32600, None),
        (b"nonsense", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"id":"a","method":"ping"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    ],
    ids=lambda value: repr(value)[:40],
)
@pytest.mark.case("B82")
def test_a_bad_line_is_answered_with_its_error(
    line: bytes | None, code: int, id: Any
) -> None:
    message, error = decode(line)
    assert message is None
    assert error is not None
    told = json.loads(encode(error))
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", id, code)


@pytest.mark.parametrize(
    "line", [b" \r", b'{"id":1,"result":5}', b'{"id":1,"error":5}']
)
def test_a_blank_line_and_a_response_get_no_answer(line: bytes) -> None:
    assert decode(line) == (None, None)
