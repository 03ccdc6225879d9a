"""HTTP transports by route (proxy, certificates), and reads of all that has come.

httpx is the interface, aiohttp the transport: it needs a third of the CPU per chunk.
httpx's client is not used: its proxy variables would break loopback, its redirects
could leak headers, and cookies are not wanted.
"""

import errno
import socket
import ssl

import aiohttp
import httpx
import truststore
from aiohttp.abc import ResolveResult
from httpx_aiohttp.transport import AiohttpResponseStream, AiohttpTransport
from msgspec import Struct

from byok.core.errors import ConfigError
from byok.core.urls import is_link_local


class Route(Struct, frozen=True):
    """How an upstream is reached: through a proxy, with further CA certificates."""

    proxy: str = ""
    ca_file: str = ""


# What responses have as their request: httpx would keep the real one, with its body,
# as long as the answer takes, and uses it only in the errors of its client.
_WITHOUT_BODY = httpx.Request("POST", "http://upstream.invalid")


class Transports:
    """Creates and keeps the transports. Close it when done."""

    def __init__(self) -> None:
        self._made: dict[Route, httpx.AsyncBaseTransport] = {}

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        """Return the transport of a route.

        Raises:
            ConfigError: the proxy or the CA file cannot be used.
        """
        if (transport := self._made.get(route)) is None:
            transport = self._made[route] = _make(route)
        return transport

    async def close(self) -> None:
        """Close every connection."""
        made, self._made = self._made, {}
        for transport in made.values():
            await transport.aclose()


class Body(AiohttpResponseStream):
    """The body of a response."""

    async def read(self) -> bytes:
        """Return what has been received, b"" at the end; raises aiohttp's errors.

        What came before the connection was lost is returned before that is raised.
        All that aiohttp holds is taken at once. Its own methods take HTTP chunk by HTTP
        chunk, and feed its parser after each, which a burst of small ones makes dear.
        """
        content = self._aiohttp_response.content
        if content.at_eof():
            return b""
        while not content._buffer and not content._eof:
            if content._exception is not None:
                raise content._exception
            await content._wait("read")
        data = b"".join(content._buffer)
        content._buffer.clear()
        content._size = 0
        if content._http_chunk_splits:
            content._http_chunk_splits.clear()
        if content._protocol._reading_paused:
            content._protocol.resume_reading()
        return data

    @property
    def coding(self) -> str:
        """How it is compressed; httpx would decode all headers to look for that."""
        return self._aiohttp_response.headers.get("Content-Encoding", "")

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read completely."""
        return self._aiohttp_response.content.at_eof()

    async def aclose(self) -> None:
        """Give the connection back, or close it if the body was not read to its end."""
        self._aiohttp_response.release()

    def abort(self) -> None:
        """Close the connection; a waiting read raises an error.

        The error is a new one: aiohttp's own is shared by all responses, and would
        collect the traceback of every aborted read.
        """
        error = aiohttp.ClientConnectionError("Connection closed")
        self._aiohttp_response.content.set_exception(error)
        self._aiohttp_response.close()


def body_of(response: httpx.Response) -> Body:
    """Return the body of a response from one of these transports."""
    assert isinstance(response.stream, Body)  # noqa: S101 - see _Transport
    return response.stream


class _Resolver(aiohttp.ThreadedResolver):
    """Resolves host names, but not to link-local addresses (cloud metadata)."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        kept = [entry for entry in found if not is_link_local(entry["host"])]
        if found and not kept:
            raise OSError(errno.EADDRNOTAVAIL, "a link-local address")
        return kept


class _Transport(AiohttpTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        response.request = _WITHOUT_BODY
        if isinstance(response.stream, AiohttpResponseStream):
            response.stream = Body(response.stream._aiohttp_response)
        return response


def _make(route: Route) -> httpx.AsyncBaseTransport:
    context, proxy = tls_context(route.ca_file), _proxy(route.proxy)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0,
            ttl_dns_cache=300,
            keepalive_timeout=60,
            ssl=context,
            resolver=_Resolver(),
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=2**18,
    )
    return _Transport(client=session, verify=context, trust_env=False, proxy=proxy)


def _proxy(url: str) -> httpx.Proxy | None:
    if not url:
        return None
    try:
        proxy = httpx.Proxy(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError("The proxy must look like http://host:port.") from error
    if not proxy.url.host:
        raise ConfigError("The proxy must look like http://host:port.")
    return proxy


def tls_context(ca_file: str) -> ssl.SSLContext:
    """Return a context that trusts the system's CA certificates, and the user's own.

    Raises:
        ConfigError: the user's file cannot be used.
    """
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"ca_file {ca_file} cannot be read as PEM.",
                hint="Let it name a PEM file, or remove it.",
            ) from error
    return context
