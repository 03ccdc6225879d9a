"""Servers of others: their keys, bounded answers, errors in byok's own words.

No text of a server is repeated to the user, because it could contain the key.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import Protocol

import httpx
from msgspec import Struct

from byok.core.errors import (
    ByokError,
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)

_FIRST_PAUSE, _MAX_PAUSE = 5.0, 600.0  # seconds
_log = logging.getLogger(__name__)
_KINDS = {
    401: RefusalKind.AUTH,
    403: RefusalKind.AUTH,
    404: RefusalKind.NOT_FOUND,
    413: RefusalKind.TOO_LARGE,
    429: RefusalKind.RATE_LIMIT,
    503: RefusalKind.OVERLOADED,
}


class SecretSource(Protocol):
    """The source of an API key or a salt."""

    async def get(self) -> str:
        """Return the secret; "" if none is needed.

        Raises:
            KeyMissing: one is needed and none was found.
        """

    def forget(self) -> None:
        """Look the secret up again next time, as it was refused."""


async def read_bounded(response: httpx.Response, max_bytes: int) -> bytes:
    """Read an answer of at most `max_bytes` bytes.

    Raises:
        UpstreamGarbled: it is larger, or compressed.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise UpstreamGarbled("Its answer is compressed, which was not asked for.")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > max_bytes:
            raise UpstreamGarbled(f"Its answer is larger than {max_bytes} bytes.")
    return bytes(content)


def translate_failure(error: Exception) -> ByokError:
    """Return byok's error for one of the transport."""
    if isinstance(error, ByokError):
        return error
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return ConnectFailed("It cannot be reached.")
    if isinstance(error, httpx.TimeoutException):
        return UpstreamTimeout("It did not answer in time.")
    if isinstance(error, httpx.TransportError):
        return UpstreamUnreachable("The connection was lost.")
    return UpstreamGarbled("Its answer is not what it should be.")


def refusal_by(status: int) -> UpstreamError:
    """Return the error for a status that is not a success."""
    if 300 <= status < 400:
        kind, text = RefusalKind.REDIRECT, "It redirects, which is not followed"
    elif (kind := _KINDS.get(status, RefusalKind.UNKNOWN)) is RefusalKind.AUTH:
        text = "It refuses the API key, or what this key may do"
    else:
        text = "It answers with an error"
    return UpstreamRefused(
        f"{text} (status {status}).", kind=kind, upstream_status=status
    )


class Pause(Struct, eq=False):
    """A pause of requests to a failing server, twice as long after each failure.

    It lasts 10 minutes at most, and a random part of up to a half is left out, so that
    the members of a team do not return all at once. The same `note` is logged once
    until a success, with `server_name`.
    """

    server_name: str
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    _until: float = 0.0
    _next: float = _FIRST_PAUSE
    note: str = ""

    @property
    def seconds(self) -> float:
        """The remaining seconds; 0 if requests may be sent."""
        return max(0.0, self._until - self.clock()) if self.note else 0.0

    def begin(self, note: str) -> None:
        """Start a pause; `note` is the reason, as a sentence for users."""
        if note != self.note:
            _log.warning("%s is not used: %s", self.server_name, note)
        self.note = note
        self._until = self.clock() + self._next * (0.5 + self.draw() / 2)
        self._next = min(2 * self._next, _MAX_PAUSE)

    def end(self) -> None:
        """Record a success."""
        if self.note:
            _log.info("%s is used again", self.server_name)
        self.note = ""
        self._next = _FIRST_PAUSE
