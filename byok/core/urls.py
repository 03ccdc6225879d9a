"""Recognise loopback and link-local addresses by their text, without DNS."""

import contextlib
import ipaddress
import socket
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(url: str) -> bool:
    """Tell an address of this machine; odd spellings and broken ones do not count."""
    try:
        return (urlsplit(url).hostname or "") in _LOOPBACK
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Return host and port of an address, as users confirm where something is sent."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_link_local(host: str) -> bool:
    """Tell a link-local address in every spelling that the system accepts."""
    with contextlib.suppress(OSError):
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_link_local


def is_plain_http(url: str) -> bool:
    """Tell whether others on the way to another machine could read what is sent."""
    return url.lower().startswith("http:") and not is_loopback(url)
