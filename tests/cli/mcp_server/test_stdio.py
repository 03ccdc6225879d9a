"""Two pipes as the streams of the SDK's server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from byok.cli.mcp_server.stdio import Descriptors, Incoming, Outgoing, streams
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
            if client.write_end in client._open:
                client.shut(client.write_end)  # lets the reading thread end
    finally:
        await asyncio.sleep(0.05)
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


async def test_mcp_stdio_bad_line_is_answered_and_the_next_is_read() -> None:
    async with connected() as (client, incoming, _):
        client.send(b"nonsense\n" + PING % 3)
        told = await client.received()
        assert told == {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32700, "message": "Parse error"},
        }
        assert isinstance(await incoming.receive(), SessionMessage)


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
        "from byok.cli.mcp_server.stdio import take_over\n"
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
