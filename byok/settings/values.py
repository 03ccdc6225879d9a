"""Validators of single values; errors say what is valid and never show the value."""

import re
from urllib.parse import urlsplit

from byok.core.routing import split_id
from byok.core.urls import is_link_local, is_loopback
from byok.dialects.fim_templates import FimMode
from byok.dialects.presets import DEMO, OPENAI_COMPATIBLE, PRESETS

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+\Z")
UPSTREAM_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}\Z")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_KEY_NAME = re.compile(r"(?:[a-z0-9][a-z0-9_-]{0,15}|env:[A-Za-z_][A-Za-z0-9_]*)\Z")
AUTO = "auto"
POSTGRES = "postgresql://"
FIM_MODES = (AUTO, *(mode.value for mode in FimMode if mode is not FimMode.EDIT))


def base_url(url: str) -> str:
    """Check an upstream's base URL, or ""; remove a pasted path of chats at its end."""
    if not url:
        return url
    if "?" in url:
        raise ValueError("must not contain a query: use query = {…}")
    return address(url).removesuffix("/chat/completions")


def team_url(url: str) -> str:
    """Check the address of a team's server: Qdrant's, or that of a database."""
    if not url.startswith(POSTGRES):
        return base_url(url)
    address(url.replace(POSTGRES, "https://", 1).replace("@", ".", 1))
    parts = urlsplit(url)
    if parts.password is not None or not parts.username or "/" in parts.path[1:]:
        raise ValueError("must look like postgresql://user@host:5432/database")
    if is_link_local(parts.hostname or ""):
        raise ValueError("must not be a link-local address")
    return url.rstrip("/")


def official_url(url: str) -> str:
    """Check the official service's address: plain http only on this machine."""
    url = address(url) if url else url
    if url.lower().startswith("http:") and not is_loopback(url):
        raise ValueError("must begin with https://, or its token could be read")
    return url


def address(url: str) -> str:
    """Check an HTTP address, and remove slashes at its end."""
    if not all("!" <= char <= "~" for char in url):
        raise ValueError("must contain printable ASCII characters only, and no space")
    try:
        parts = urlsplit(url)
        _ = parts.port
        if not re.fullmatch(r"[^\[\]]*|\[[0-9A-Fa-f:.]+\](:\d*)?", parts.netloc):
            raise ValueError
    except ValueError:
        raise ValueError("must contain a valid host and port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must look like https://host/v1")
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise ValueError("must not contain a user, password, query or fragment")
    if is_link_local(parts.hostname):
        raise ValueError("must not be a link-local address")
    return url.rstrip("/")


def port(number: int) -> int:
    """Check a TCP port; ports below 1024 are privileged."""
    if number and not 1024 <= number <= 65535:
        raise ValueError("must be 0 (any free port) or from 1024 to 65535")
    return number


def is_alias(name: str) -> bool:
    """Tell whether a name may be an alias."""
    return bool(_ALIAS.match(name))


def aliases(value: dict[str, str]) -> dict[str, str]:
    """Check aliases: each stands for a complete model id, not for another alias."""
    for name, model in value.items():
        if not is_alias(name):
            raise ValueError("a name must be of letters, digits, '.', '_' and '-'")
        if split_id(model) is None:
            raise ValueError("must stand for models like byok:<upstream>:<model>")
    return value


def model_ids(value: list[str]) -> list[str]:
    """Check models that must name their upstream: complete ids, or aliases."""
    for model in value:
        if split_id(model) is None and not is_alias(model):
            raise ValueError("must be models like byok:<upstream>:<model>, or aliases")
    return value


def key_labels(value: list[str]) -> list[str]:
    """Check the names of keys; a key itself does not belong in the settings."""
    for name in value:
        if not _KEY_NAME.match(name):
            raise ValueError(
                "must be names like work (a-z, 0-9, _ and -, 16 characters at most) or "
                "env:VARIABLE; store the keys with byok keys set UPSTREAM/NAME"
            )
    if len(set(value)) < len(value):
        raise ValueError("must be different names")
    return value


def upstream_types() -> tuple[str, ...]:
    """Return the values of an upstream's `type`."""
    return (OPENAI_COMPATIBLE, *PRESETS, DEMO)


def dialect_names() -> tuple[str, ...]:
    """Return the names of all dialects."""
    from byok.dialects.base import DIALECTS  # slow: it imports them all

    return tuple(DIALECTS)


def headers(fields: dict[str, str]) -> dict[str, str]:
    """Check header names and values: printable ASCII, which rules out injection."""
    for name, value in fields.items():
        if not _HEADER_NAME.match(name):
            raise ValueError("a header's name has letters, digits and - only")
        if not (value.isascii() and value.isprintable()):
            raise ValueError("a header's value has printable ASCII characters only")
    return fields


def query(parameters: dict[str, str]) -> dict[str, str]:
    """Check the names and values of query parameters."""
    for name, value in parameters.items():
        if not name or not all("!" <= char <= "~" for char in name + value):
            raise ValueError("must contain printable ASCII characters only, no space")
    return parameters


def proxy(url: str) -> str:
    """Check the address of a proxy."""
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("must look like http://host:port")
    return url
