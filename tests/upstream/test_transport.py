"""The ways to the network: one transport each, no proxy or cookie but by order."""

import asyncio
import socket
from pathlib import Path

import aiohttp
import httpx
import pytest
from aiohttp import client_reqrep, web
from aiohttp.test_utils import RawTestServer

from byok.core.errors import ConfigError
from byok.upstream.transport import Route, Transports, body_of
from tests.fakes.upstream import FakeUpstream, Script, dead_url


async def get(transports: Transports, route: Route, url: str) -> httpx.Response:
    request = httpx.Request("GET", url)
    response = await transports.by(route).handle_async_request(request)
    await response.aread()
    return response


@pytest.mark.parametrize(
    "proxy", ["not a proxy", "ftp://127.0.0.1:1", "127.0.0.1:8080", "http://"]
)
async def test_an_invalid_proxy_is_refused(transports: Transports, proxy: str) -> None:
    with pytest.raises(ConfigError, match="proxy"):
        transports.by(Route(proxy=proxy))


async def test_an_invalid_ca_file_is_refused(
    transports: Transports, tmp_path: Path
) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")
    for path in (junk, tmp_path, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match="ca_file"):
            transports.by(Route(ca_file=str(path)))


@pytest.mark.case("F44")
async def test_proxies_of_the_environment_are_ignored(
    fake: FakeUpstream, transports: Transports, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, dead_url())
    response = await get(transports, Route(), f"{fake.url}/models")
    assert response.status_code == 200


@pytest.mark.case("B62")
async def test_a_redirect_is_not_followed_and_a_cookie_not_kept(
    fake: FakeUpstream, transports: Transports
) -> None:
    headers = {"Location": f"{fake.url}/models", "Set-Cookie": "a=b; Path=/"}
    fake.play(Script([b"x"], status=302, headers=headers))
    request = httpx.Request("POST", f"{fake.url}/chat/completions", json={})
    for _ in range(2):
        response = await transports.by(Route()).handle_async_request(request)
        await response.aread()
        assert response.status_code == 302
    assert "Cookie" not in fake.headers[1]
    assert fake.list_headers == []


async def test_an_aborted_body_leaves_nothing_in_the_library(
    fake: FakeUpstream, transports: Transports
) -> None:
    shared = client_reqrep._CONNECTION_CLOSED_EXCEPTION
    before = shared.__traceback__
    for _ in range(3):
        fake.play(Script([b"first"], end="hang"))
        request = httpx.Request("POST", f"{fake.url}/chat/completions", json={})
        response = await transports.by(Route()).handle_async_request(request)
        body = body_of(response)
        await body.read()
        body.abort()
        with pytest.raises(aiohttp.ClientConnectionError):
            await body.read()
    assert shared.__traceback__ is before


@pytest.mark.parametrize("is_whole", [True, False])
async def test_a_slow_reader_gets_all_that_was_held_back(
    is_whole: bool, transports: Transports
) -> None:
    """More bytes than the library holds, in more HTTP chunks than it counts."""
    sent = [bytes([n % 256]) * 700 for n in range(8000)]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in sent:
            await response.write(piece)
        return response

    async with RawTestServer(answer) as server:
        request = httpx.Request("GET", str(server.make_url("/")))
        response = await transports.by(Route()).handle_async_request(request)
        body, got = body_of(response), bytearray()
        await asyncio.sleep(0.1)
        if is_whole:
            got += await response.aread()
        else:
            while data := await body.read():
                got += data
                await asyncio.sleep(0)
            assert body.is_at_end
    assert bytes(got) == b"".join(sent)


async def test_what_came_before_the_connection_was_lost_is_read(
    transports: Transports,
) -> None:
    """Its reader was waiting for a client that reads slowly."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    may_end, ended = asyncio.Event(), asyncio.Event()

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        await may_end.wait()
        writer.write(b"4\r\nlast\r\n")
        writer.close()
        ended.set()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        request = httpx.Request("GET", f"http://127.0.0.1:{port}/")
        response = await transports.by(Route()).handle_async_request(request)
        may_end.set()
        await ended.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        body = body_of(response)
        assert await body.read() == b"last"
        with pytest.raises(aiohttp.ClientPayloadError):
            await body.read()
        await response.aclose()


@pytest.mark.parametrize("status", [204, 304, 200])
async def test_an_answer_without_a_body_ends_at_once(
    status: int, fake: FakeUpstream, transports: Transports
) -> None:
    fake.play(Script([], status=status))
    request = httpx.Request("POST", f"{fake.url}/chat/completions", json={})
    response = await transports.by(Route()).handle_async_request(request)
    assert (response.status_code, await body_of(response).read()) == (status, b"")


async def test_a_host_name_of_a_link_local_address_is_refused(
    transports: Transports, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    with pytest.raises(httpx.HTTPError, match="link-local"):
        await get(transports, Route(), "http://metadata.example/models")
