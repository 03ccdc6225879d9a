"""Requests to a Qdrant server, and what their failures are called."""

import asyncio
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from byok.core.errors import (
    ByokError,
    ConfigError,
    ConnectFailed,
    UpstreamGarbled,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.search.vectors.team.qdrant import QdrantStore
from byok.upstream.transport import Route, Transports
from tests.fakes.asker import Key
from tests.fakes.qdrant_server import QdrantServer

if TYPE_CHECKING:  # its package is a quarter of what all tests here import
    from qdrant_client import AsyncQdrantClient


async def look(client: "AsyncQdrantClient") -> bool:
    return await client.collection_exists("x")


class Failing(httpx.AsyncBaseTransport):
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise self._error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("x"), ConnectFailed),
        (httpx.ConnectTimeout("x"), ConnectFailed),
        (httpx.ReadTimeout("x"), UpstreamTimeout),
        (httpx.PoolTimeout("x"), UpstreamTimeout),
        (httpx.ReadError("x"), UpstreamUnreachable),
        (httpx.RemoteProtocolError("x"), UpstreamUnreachable),
        (UpstreamGarbled("x"), UpstreamGarbled),
        (httpx.DecodingError("x"), UpstreamGarbled),
        (AssertionError("x"), UpstreamGarbled),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
async def test_failures_below_the_client(
    error: Exception, kind: type[ByokError]
) -> None:
    server = QdrantStore("http://127.0.0.1:1", lambda: Failing(error), Key())
    with pytest.raises(kind) as caught:
        await server.ask(look)
    assert type(caught.value) is kind
    await server.close()


async def test_an_answer_that_drips_is_given_up(server: QdrantServer) -> None:
    """The time limit is for the whole answer, not for each piece of it."""
    from aiohttp import web

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    server.fault = drip
    transports = Transports()
    team = QdrantStore(server.url, lambda: transports.by(Route()), Key())
    with pytest.raises(UpstreamTimeout):
        await team.ask(look, seconds=0.1)
    await team.close()
    await transports.close()


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://qdrant.example", "https://qdrant.example/collections/x/exists"),
        ("https://h:6333", "https://h:6333/collections/x/exists"),
        ("http://[::1]:6333/", "http://[::1]:6333/collections/x/exists"),
        ("http://127.0.0.1", "http://127.0.0.1/collections/x/exists"),
        ("https://h/vectors", "https://h/vectors/collections/x/exists"),
    ],
)
async def test_addresses(url: str, asked: str) -> None:
    seen: list[httpx.URL] = []

    class Notes(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            seen.append(request.url)
            return httpx.Response(500)

    server = QdrantStore(url, Notes, Key())
    with pytest.raises(ByokError):
        await server.ask(look)
    assert seen == [httpx.URL(asked)]
    await server.close()


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        QdrantStore("https://qdrant.example", httpx.AsyncBaseTransport, Key())
    assert "--extra qdrant" in caught.value.hint
