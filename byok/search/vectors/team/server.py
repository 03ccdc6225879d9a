"""The team's Qdrant server: one request at a time, and errors in byok's own words.

The official client is loaded when the server is asked first; with its gRPC part it
takes most of a second. Nothing that a server says is repeated: it could be the key.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, TypeVar

import httpx
from msgspec import Struct

from byok import __version__
from byok.core.errors import (
    ByokError,
    ConfigError,
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.platform.memory import explain_import

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient


# The HTTP below the client library: the key, and limits on what comes back.
#
# The library adds a key only where it is given one for good, reads answers of any size,
# takes compressed ones and names its own version. This transport is put below it, so
# that requests leave byok as those to other upstreams do: the key is looked up for
# each, the answer is bounded, and no redirect is followed, because none is passed on as
# such.


MOST_BYTES = 4 * 2**20  # the largest answer that is asked for has a third of it


class BoundedTransport(httpx.AsyncBaseTransport):
    """Sends requests by another transport, which its owner closes."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, api_key: Callable[[], str]
    ) -> None:
        self._inner = inner
        self._api_key = api_key

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, read to the end.

        Raises:
            UpstreamGarbled: the answer is too large or compressed.
        """
        request.headers["accept-encoding"] = "identity"
        request.headers["user-agent"] = f"byok/{__version__}"
        if key := self._api_key():
            request.headers["api-key"] = key
        response = await self._inner.handle_async_request(request)
        try:
            content = await read_bounded(response, MOST_BYTES)
        finally:
            await response.aclose()
        kind = response.headers.get("content-type", "")
        return httpx.Response(
            response.status_code, headers={"content-type": kind}, content=content
        )


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


_NOT_INSTALLED = (
    "A team's index needs the package qdrant-client, which is not installed.",
    "Run: byok upgrade --extra qdrant",
)
_T = TypeVar("_T")

READ_SECONDS = 2.0
WRITE_SECONDS = 10.0  # the server answers when it has written; nobody waits for it

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


class TeamServer:
    """The server, asked by HTTP without the environment's proxies.

    `transport` is called in the event loop, when the server is asked first; `seconds`
    is how long answers may take that `ask` is given no time for.
    """

    def __init__(
        self,
        url: str,
        transport: Callable[[], httpx.AsyncBaseTransport],
        api_key: SecretSource,
        *,
        seconds: float = READ_SECONDS,
    ) -> None:
        """Take where the server is.

        Raises:
            ConfigError: the client library is not installed.
        """
        if find_spec("qdrant_client") is None:
            raise ConfigError(_NOT_INSTALLED[0], hint=_NOT_INSTALLED[1])
        self._url = url
        self._transport = transport
        self._api_key = api_key
        self._seconds = seconds
        self._key = ""
        self._client: AsyncQdrantClient | None = None
        self._lock = asyncio.Lock()

    async def ask(
        self,
        request: "Callable[[AsyncQdrantClient], Awaitable[_T]]",
        *,
        seconds: float = 0,
    ) -> _T:
        """Make one request of the client and return its result.

        Raises:
            ConfigError: there is no key that is needed, or it cannot be used.
            UpstreamError: the server gave no usable answer in time.
        """
        async with self._lock:
            if self._client is None:
                self._client = await self._connect()
            self._key = await self._api_key.get()
        try:
            return await _run(request(self._client), seconds or self._seconds)
        except UpstreamRefused as refused:
            if refused.kind is RefusalKind.AUTH:
                self._api_key.forget()
            raise

    async def close(self) -> None:
        """Close the client; the next request makes another one."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connect(self) -> "AsyncQdrantClient":
        try:
            module = await asyncio.to_thread(import_module, "qdrant_client")
        except ImportError as error:  # of a part of it, such as gRPC
            raise explain_import(error, *_NOT_INSTALLED) from error
        port = httpx.URL(self._url).port
        client: AsyncQdrantClient = module.AsyncQdrantClient(
            url=self._url,
            # The library's own default is another one.
            port=port or (443 if self._url.startswith("https:") else 80),
            prefer_grpc=False,
            check_compatibility=False,  # it would ask from a thread of its own
            timeout=int(WRITE_SECONDS),
            transport=BoundedTransport(self._transport(), lambda: self._key),
            trust_env=False,
            follow_redirects=False,
        )
        return client


async def _run(request: Awaitable[_T], seconds: float) -> _T:
    from qdrant_client.http.exceptions import (
        ResponseHandlingException,
        UnexpectedResponse,
    )

    try:
        async with asyncio.timeout(seconds):
            return await request
    except TimeoutError:
        raise UpstreamTimeout(
            f"It did not answer within {seconds:g} seconds."
        ) from None
    except UnexpectedResponse as error:
        raise refusal_by(error.status_code or 0) from None
    except ResponseHandlingException as error:
        raise translate_failure(error.source) from None
    except (ValueError, AssertionError, RecursionError):
        raise UpstreamGarbled("Its answer is not what it should be.") from None


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


_log = logging.getLogger(__name__)

_FIRST, _LONGEST = 5.0, 600.0  # seconds


class Pause(Struct, eq=False):
    """Waits twice as long after each failure, 10 minutes at most.

    The same trouble is logged once, until a success; `what` is the server's name there.
    Waits differ by up to a half, so that the members of a team do not come back all at
    once.
    """

    what: str = "the team's index"
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
