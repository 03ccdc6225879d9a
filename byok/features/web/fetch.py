"""Reads pages of the web, of public addresses only.

The address is checked by the resolver of the connection, which uses the checked
address: a name that resolves to another address a moment later changes nothing.
Redirects are followed one by one, each with its own check. With a proxy, the proxy
connects: then a name is refused if this machine resolves it to an address that is not
public.
"""

import asyncio
import ipaddress
import re
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct
from yarl import URL

from byok.core.errors import ConfigError, UpstreamGarbled
from byok.features.web.calls import WebFailure
from byok.features.web.providers import AGENT
from byok.upstream.http_body import read_plain
from byok.upstream.transport import Route, tls_context

SECONDS = 10.0
MOST_BYTES = 5 * 2**20  # of a page, decompressed; reading ends there
_MAX_REDIRECTS = 5
_MAX_URL_CHARS = 2000
_READ_BYTES = 2**12  # of one read: compressed bytes may grow a thousandfold
_TEXT = re.compile(r"text/[\w.+-]+|application/(?:[\w.+-]+\+)?(?:json|xml)")
_NOT_PUBLIC = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
]
_GLOBAL = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Tell whether an IP address is one of the public internet.

    Of IPv6, only the allocated range is public, so mapped, tunnelled and local
    addresses are not; a NAT64 address is public if the IPv4 address in it is.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if ip not in _GLOBAL:
            return False
    return not any(ip in network for network in _NOT_PUBLIC)


class NotPublic(OSError):
    """A name has an address that is not public."""


class PublicResolver(AbstractResolver):
    """Resolves only names that have no other than public addresses."""

    def __init__(self, resolver: AbstractResolver | None) -> None:
        self._resolver = resolver or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name.

        Raises:
            NotPublic: one of them is not public.
        """
        addresses = await self._resolver.resolve(host, port, family)
        if not all(is_public(entry["host"]) for entry in addresses):
            raise NotPublic(host)
        return addresses

    async def close(self) -> None:
        """Close the inner resolver."""
        await self._resolver.close()


class FetchedPage(Struct, frozen=True):
    """The raw content of a page; `is_cut` if the page is longer."""

    url: str
    media_type: str
    charset: str
    content: bytes
    is_cut: bool = False


async def fetch_page(
    address: str,
    route: Route,
    *,
    resolver: AbstractResolver | None = None,
    seconds: float = SECONDS,
) -> FetchedPage:
    """Read a page, at most 5 MB of it, within some seconds.

    Raises:
        WebFailure: the page must not or cannot be read.
    """
    public = PublicResolver(resolver)
    try:
        async with asyncio.timeout(seconds), _session(route, public) as http:
            url = _check(address)
            for _ in range(_MAX_REDIRECTS + 1):
                if route.proxy:
                    await _check_name(url, public)
                async with http.get(
                    url, allow_redirects=False, proxy=route.proxy or None
                ) as response:
                    if 300 <= response.status < 400:
                        url = _check(_target(url, response))
                        continue
                    return await _read(url, response)
    except TimeoutError as error:
        raise WebFailure(f"not read within {seconds:g} s") from error
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, NotPublic):
            raise _refused() from error
        raise WebFailure("not read: the server cannot be reached") from error
    except (aiohttp.ClientError, OSError, ValueError, ConfigError) as error:
        raise WebFailure("not read: the connection failed") from error
    raise WebFailure(f"not read: it redirects more than {_MAX_REDIRECTS} times")


def _refused() -> WebFailure:
    return WebFailure("not read: only public addresses of the web may be")


def _session(route: Route, public: PublicResolver) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=tls_context(route.ca_file),
            resolver=None if route.proxy else public,
            use_dns_cache=False,
            force_close=True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        headers={
            "User-Agent": AGENT,
            "Accept": "text/html, text/*;q=0.9, application/json;q=0.8",
            "Accept-Encoding": "gzip, deflate",
        },
    )


def _check(address: str | URL) -> URL:
    """Return a valid address, whose name is not resolved yet.

    Raises:
        WebFailure: the address must not be read.
    """
    try:
        url = URL(address)
        host, port = url.raw_host or "", url.port
    except (ValueError, TypeError) as error:
        raise WebFailure("not read: that is no address") from error
    if len(str(url)) > _MAX_URL_CHARS:
        raise WebFailure("not read: the address is too long")
    if url.scheme not in ("http", "https") or not host:
        raise WebFailure("not read: only http and https addresses may be")
    if url.raw_user is not None or url.raw_password is not None:
        raise WebFailure("not read: the address holds a user or a password")
    if port not in (80, 443):
        raise WebFailure("not read: only ports 80 and 443 may be asked")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if "%" in host or ":" in host:
            raise _refused() from None
        return url.with_fragment(None)
    if not is_public(host):
        raise _refused()
    return url.with_fragment(None)


async def _check_name(url: URL, public: PublicResolver) -> None:
    """Check a name that a proxy resolves; only the proxy may know it."""
    try:
        await public.resolve(url.raw_host or "", url.port or 0, socket.AF_UNSPEC)
    except NotPublic as error:
        raise _refused() from error
    except OSError:
        return


def _target(url: URL, response: aiohttp.ClientResponse) -> URL:
    location = response.headers.get("Location", "")
    if not location:
        raise WebFailure(f"not read: it answered with status {response.status}")
    try:
        return url.join(URL(location))
    except ValueError as error:
        raise WebFailure("not read: it redirects to what is no address") from error


async def _read(url: URL, response: aiohttp.ClientResponse) -> FetchedPage:
    has_type = "Content-Type" in response.headers
    media_type = response.content_type if has_type else "text/html"
    if response.status != 200:
        raise WebFailure(f"not read: it answered with status {response.status}")
    if not _TEXT.fullmatch(media_type):
        raise WebFailure(f"not read: it is {media_type[:60]}, and byok reads text only")
    try:
        reads = response.content.iter_chunked(_READ_BYTES)
        coding = response.headers.get("Content-Encoding", "")
        content, is_cut = await read_plain(reads, MOST_BYTES, coding)
    except UpstreamGarbled as error:
        raise WebFailure("not read: its compression is damaged or a trap") from error
    return FetchedPage(str(url), media_type, response.charset or "", content, is_cut)
