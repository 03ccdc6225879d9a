"""HTTP transports by route (proxy, certificates), with reads of all received bytes.

httpx is the interface, aiohttp the transport, which needs a third of the CPU per chunk.
httpx's client is not used: its proxy variables would break loopback, its redirects
could leak headers, and byok wants no cookies.
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

# The request of every response: httpx would store the real one, with its body, as long
# as the answer takes, and uses it only in the errors of its client.
_REQUEST_WITHOUT_BODY = httpx.Request("POST", "http://upstream.invalid")


class Route(Struct, frozen=True):
    """How an upstream is reached: through a proxy, with further CA certificates."""

    proxy: str = ""
    ca_file: str = ""


class Transports:
    """Creates and caches the transports. Close it when done."""

    def __init__(self) -> None:
        self._transports: dict[Route, httpx.AsyncBaseTransport] = {}

    def by(self, route: Route) -> httpx.AsyncBaseTransport:
        """Return the transport of a route.

        Raises:
            ConfigError: the proxy or the CA file cannot be used.
        """
        if (transport := self._transports.get(route)) is None:
            transport = self._transports[route] = _make_transport(route)
        return transport

    async def close(self) -> None:
        """Close every connection."""
        transports, self._transports = self._transports, {}
        for transport in transports.values():
            await transport.aclose()


class Body(AiohttpResponseStream):
    """The body of a response."""

    async def read(self) -> bytes:
        """Return the received bytes, b"" at the end; raise aiohttp's errors.

        Bytes that came before the connection was lost are returned before the error is
        raised. The whole buffer of aiohttp is read at once: aiohttp's own methods read
        one HTTP chunk and feed its parser after each, which is slow for many small
        chunks.
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
        """How the body is compressed; httpx would decode all headers to find out."""
        return self._aiohttp_response.headers.get("Content-Encoding", "")

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read completely."""
        return self._aiohttp_response.content.at_eof()

    async def aclose(self) -> None:
        """Release the connection, or close it if the body was not read to its end."""
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
        addresses = await super().resolve(host, port, family)
        allowed = [entry for entry in addresses if not is_link_local(entry["host"])]
        if addresses and not allowed:
            raise OSError(errno.EADDRNOTAVAIL, "a link-local address")
        return allowed


class _Transport(AiohttpTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        response.request = _REQUEST_WITHOUT_BODY
        if isinstance(response.stream, AiohttpResponseStream):
            response.stream = Body(response.stream._aiohttp_response)
        return response


def _make_transport(route: Route) -> httpx.AsyncBaseTransport:
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
