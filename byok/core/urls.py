"""Recognise loopback and link-local addresses by their text, without DNS."""

import contextlib
import ipaddress
import socket
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(url: str) -> bool:
    """Tell whether a URL names this machine; odd spellings and invalid URLs do not."""
    try:
        return (urlsplit(url).hostname or "") in _LOOPBACK
    except ValueError:
        return False


def host_of(url: str) -> str:
    """Return host and port of a URL, in the form in which users consent to them."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _PORTS.get(parts.scheme, 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_link_local(host: str) -> bool:
    """Tell whether a host is a link-local address, in any spelling of the system."""
    with contextlib.suppress(OSError):
        host = socket.inet_ntoa(socket.inet_aton(host))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_link_local


def is_plain_http(url: str) -> bool:
    """Tell whether a URL leads to another machine without encryption."""
    return url.lower().startswith("http:") and not is_loopback(url)
