"""Servers of others: their keys, answers within bounds, errors in byok's own words.

Nothing that a server says is repeated: it could be the key.
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
    """Where the API key and the salt come from."""

    async def get(self) -> str:
        """Return it; "" if none is needed.

        Raises:
            KeyMissing: one is needed and none was found.
        """

    def forget(self) -> None:
        """Look it up again next time: it was refused."""


async def read_bounded(response: httpx.Response, most: int) -> bytes:
    """Return an answer of at most `most` bytes, read to the end.

    Raises:
        UpstreamGarbled: it is larger, or compressed.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise UpstreamGarbled("Its answer is compressed, which was not asked for.")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > most:
            raise UpstreamGarbled(f"Its answer is larger than {most} bytes.")
    return bytes(content)


def translate_failure(error: Exception) -> ByokError:
    """Return what an error of the transport means."""
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
    """Return what a status means that is none of success."""
    if 300 <= status < 400:
        kind, text = RefusalKind.REDIRECT, "It redirects, which is not followed"
    elif (kind := _KINDS.get(status, RefusalKind.UNKNOWN)) is RefusalKind.AUTH:
        text = "It refuses the API key, or what this key may do"
    else:
        text = "It answers with an error"
    return UpstreamRefused(
        f"{text} (status {status}).", kind=kind, upstream_status=status
    )


# How long a failing server is left alone, and what the user is told meanwhile.


_FIRST, _LONGEST = 5.0, 600.0  # seconds


class Pause(Struct, eq=False):
    """Waits twice as long after each failure, 10 minutes at most.

    The same trouble is logged once, until a success; `what` is the server's name there.
    Waits differ by up to a half, so that the members of a team do not come back all at
    once.
    """

    what: str
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    _until: float = 0.0
    _next: float = _FIRST
    note: str = ""

    @property
    def seconds(self) -> float:
        """How long it lasts from now on; 0 if the server may be asked."""
        return max(0.0, self._until - self.clock()) if self.note else 0.0

    def begin(self, note: str) -> None:
        """Leave the server alone for a while; `note` says why, in one sentence."""
        if note != self.note:
            _log.warning("%s is not used: %s", self.what, note)
        self.note = note
        self._until = self.clock() + self._next * (0.5 + self.draw() / 2)
        self._next = min(2 * self._next, _LONGEST)

    def end(self) -> None:
        """Note that the server answered as it should."""
        if self.note:
            _log.info("%s is used again", self.what)
        self.note = ""
        self._next = _FIRST
