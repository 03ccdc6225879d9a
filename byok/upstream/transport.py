"""One httpx client per way of reaching the network.

httpx gives the interface, aiohttp the transport: a third of the CPU per chunk. Proxy
variables of the environment are ignored (they break loopback), redirects are not
followed (they would carry headers elsewhere), no cookie is kept.
"""

import ssl
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from byok.errors import ConfigError

CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Route:
    """How an upstream is reached: an explicit proxy, further authorities."""

    proxy: str = ""
    ca_file: str = ""


class Transports:
    """Makes and keeps the clients; close it at the end."""

    def __init__(self) -> None:
        self._clients: dict[Route, httpx.AsyncClient] = {}

    def client(self, route: Route) -> httpx.AsyncClient:
        """Return the client of a route; it never raises for a status.

        Raises:
            ConfigError: the proxy or the file of authorities cannot be used.
        """
        if route not in self._clients:
            self._clients[route] = _make(route)
        return self._clients[route]

    async def close(self) -> None:
        """Close every connection."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()


def _make(route: Route) -> httpx.AsyncClient:
    context, proxy = _tls(route.ca_file), _proxy(route.proxy)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=0, ttl_dns_cache=300, keepalive_timeout=60, ssl=context
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        read_bufsize=2**18,
    )
    return httpx.AsyncClient(
        transport=AiohttpTransport(
            client=session, verify=context, trust_env=False, proxy=proxy
        ),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        follow_redirects=False,
        trust_env=False,
    )


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


def _tls(ca_file: str) -> ssl.SSLContext:
    """Trust the system's authorities, and the user's own where given."""
    context = ssl.create_default_context()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"ca_file {ca_file} cannot be read as PEM.") from error
    return context
