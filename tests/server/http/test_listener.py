"""The HTTP server answers on its sockets, and lets go of them at the end."""

import asyncio

import aiohttp
import pytest
from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.core.daemon.sockets import listen
from byok.server.http.listener import serve_http
from byok.server.http.protocol import HttpServer


async def test_connections_are_accepted_until_a_site_stops_or_the_block_ends() -> None:
    async def handler(request: BaseRequest) -> StreamResponse:
        return Response(status=204)

    sockets = listen(0)
    port = sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    async with aiohttp.ClientSession() as http:
        async with serve_http(HttpServer(handler, 10), sockets, 0.1) as sites:
            assert (await http.get(url)).status == 204
            for site in sites:
                await site.stop()
            with pytest.raises(OSError):
                await asyncio.open_connection("127.0.0.1", port)
        assert [sock.fileno() for sock in sockets] == [-1] * len(sockets)
