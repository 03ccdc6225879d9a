"""The ways to the network, one for each route (proxy and certificates).

aiohttp carries the requests: it needs a third of httpx's CPU per chunk. httpx is for
the libraries that speak it, and carried by aiohttp, too. Redirects are not followed, as
they could leak headers; proxies are not those of the environment, which would break
loopback; cookies are not wanted.
"""

import errno
import socket
import ssl
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import aiohttp
import truststore
from aiohttp.abc import ResolveResult
from aiohttp.helpers import strip_auth_from_url
from msgspec import Struct
from yarl import URL

from byok.core.errors import ConfigError
from byok.core.urls import is_link_local

if TYPE_CHECKING:
    import httpx

_PROXIES = ("http", "https")


class Route(Struct, frozen=True):
    """How an upstream is reached: through a proxy, with further CA certificates."""

    proxy: str = ""
    ca_file: str = ""


class Response:
    """An answer: its status, its headers, and its body as it comes. Close it."""

    status: int
    headers: Mapping[str, str]

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers

    @property
    def is_success(self) -> bool:
        """Whether the status is 200 to 299."""
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        """Whether the status is 300 to 399."""
        return 300 <= self.status < 400

    async def read(self) -> bytes:
        """Return what has been received, b"" at the end; raises aiohttp's errors.

        aiohttp feeds its parser after each HTTP chunk that is taken from its buffer,
        also where reading was never paused. Without a low-water mark it does not: what
        was paused goes on here, once the buffer is empty.
        """
        content = self._answer.content
        content._low_water = 0
        data = await content.readany()
        if content._protocol._reading_paused:
            content._protocol.resume_reading()
        return data

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read completely."""
        return self._answer.content.at_eof()

    def abort(self) -> None:
        """Close the connection; a waiting read raises an error.

        The error is a new one: aiohttp's own is shared by all responses, and would
        collect the traceback of every aborted read.
        """
        error = aiohttp.ClientConnectionError("Connection closed")
        self._answer.content.set_exception(error)
        self._answer.close()

    async def close(self) -> None:
        """Close it; its connection is reused if it was read to the end."""
        self._answer.release()
        try:
            await self._answer.wait_for_close()
        except aiohttp.ClientError:
            return  # the connection broke; that is as good as closed


class Transport:
    """Sends requests on one route."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._context = tls_context(route.ca_file)
        self._proxy, self._proxy_auth = _split_proxy(route.proxy)
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ttl_dns_cache=300,
                keepalive_timeout=60,
                ssl=self._context,
                resolver=_Resolver(),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=2**18,
        )

    async def send(
        self,
        url: str,
        content: bytes | None,
        headers: Mapping[str, str],
        connect_seconds: float | None = None,
    ) -> Response:
        """Send a POST with content, else a GET, and return the response to it.

        Raises:
            aiohttp.ClientError: there is no response.
        """
        answer = await self.session.request(
            "GET" if content is None else "POST",
            url,
            data=content or None,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(sock_connect=connect_seconds),
            proxy=self._proxy,
            proxy_auth=self._proxy_auth,
        )
        return Response(answer)

    @cached_property
    def for_httpx(self) -> "httpx.AsyncBaseTransport":
        """The same way for libraries that speak httpx, which few need."""
        import httpx
        from httpx_aiohttp.transport import AiohttpTransport

        proxy = httpx.Proxy(self._route.proxy) if self._route.proxy else None
        return AiohttpTransport(
            client=self.session, verify=self._context, trust_env=False, proxy=proxy
        )


class Transports:
    """Creates and keeps the transports. Close it when done."""

    def __init__(self) -> None:
        self._made: dict[Route, Transport] = {}

    def by(self, route: Route) -> Transport:
        """Return the transport of a route.

        Raises:
            ConfigError: the proxy or the CA file cannot be used.
        """
        if (transport := self._made.get(route)) is None:
            transport = self._made[route] = Transport(route)
        return transport

    async def close(self) -> None:
        """Close every connection."""
        made, self._made = self._made, {}
        for transport in made.values():
            await transport.session.close()


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


def _split_proxy(text: str) -> tuple[URL | None, aiohttp.BasicAuth | None]:
    """Return the address of a proxy, and apart from it the user that it names."""
    if not text:
        return None, None
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in _PROXIES or not url.host:
        raise ConfigError("The proxy must look like http://host:port.")
    return strip_auth_from_url(url)


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
