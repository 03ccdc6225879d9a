"""The official service, called with the user's own token.

The service receives the body of the client's request and a short list of headers, never
byok's token, an upstream's key or a cookie. The user's token is sent nowhere else.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx

from byok import __version__
from byok.core.errors import (
    KeyMissing,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
)
from byok.core.record import current_record
from byok.core.redact import Redactor
from byok.core.routing import OFFICIAL
from byok.upstream.base import ForwardedResponse
from byok.upstream.breaker import CircuitBreaker
from byok.upstream.http_body import describing_headers, hang_up, pass_on
from byok.upstream.http_sender import Caller, KeySource, redirect_error
from byok.upstream.timeouts import REMOTE
from byok.upstream.transport import Route, Transports

_PASSED_HEADERS = (
    "Content-Type",
    "User-Agent",
    "X-Request-Id",
    "X-Request-Session-Id",
    "X-Mode",
    "x-api-version",
    "conversation-id",
)
_HINTS = {
    401: "Store its token again: byok keys set official",
    402: "Its credit is used up.",
    403: "Its token may not do this.",
}


class OfficialService:
    """Relays requests to the official service, from the response's first byte on."""

    def __init__(
        self,
        base_url: str,
        transports: Transports,
        key: KeySource,
        redactor: Redactor,
        *,
        route: Route | None,
    ) -> None:
        breaker = CircuitBreaker(upstream=OFFICIAL)
        self._caller = Caller(transports, key, breaker, route=route or Route())
        self._redactor = redactor
        self.base_url = base_url

    @asynccontextmanager
    async def ask(
        self, path: str, content: bytes, headers: Mapping[str, str], seconds: float
    ) -> AsyncIterator[ForwardedResponse]:
        """Send a client's request, and yield the response after its first byte.

        Leaving the context closes the connection.

        Raises:
            ByokError: there is no token, no connection, no byte within `seconds`, or
                the service refused the request.
            UpstreamError: while reading, the connection broke.
        """
        url = httpx.URL(self.base_url + path)
        current_record().note_attempt(content)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(seconds):
                    response = await self._caller.call(
                        url, content, lambda key: self._head(headers, key)
                    )
                    stack.push_async_callback(hang_up, response)
                    _check(response)
                    reads = pass_on(response, OFFICIAL, str(url), REMOTE)
                    await stack.enter_async_context(aclosing(reads))
                    first = await anext(reads, b"")
            except TimeoutError as error:
                raise too_late() from error
            except UpstreamError as error:
                error.upstream = OFFICIAL
                raise
            body, status = _chain(first, reads), response.status_code
            yield ForwardedResponse(describing_headers(response), body, status)

    def _head(self, client_headers: Mapping[str, str], key: str) -> httpx.Headers:
        """Return the headers, with those of the client that may be passed on."""
        if not key:
            raise KeyMissing(
                "There is no token for the official service.",
                hint=f"Run: byok keys set {OFFICIAL}",
            )
        sent = {name: client_headers.get(name) for name in _PASSED_HEADERS}
        passed = {
            name: value  # plain text without a secret
            for name, value in sent.items()
            if value is not None
            and value.isascii()
            and value.isprintable()
            and self._redactor(value) == value
        }
        return httpx.Headers(
            {
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": f"byok/{__version__}",
                **passed,
                "Authorization": f"Bearer {key}",
            }
        )


def too_late() -> UpstreamTimeout:
    """Return the error for a response that did not come in time."""
    return UpstreamTimeout("it did not answer in time.", upstream=OFFICIAL)


def _check(response: httpx.Response) -> None:
    status = response.status_code
    if response.is_redirect:
        raise redirect_error(status)
    if not response.is_success:
        raise UpstreamRefused(
            f"it answered {status}.",
            upstream_status=status,
            hint=_HINTS.get(status, ""),
        )
    if response.headers.get("content-type", "").lower().startswith("text/html"):
        raise UpstreamGarbled(
            "it answered with a web page.",
            hint="Is the address (base_url) right, or is a login page in between?",
        )


async def _chain(
    first: bytes, reads: AsyncIterator[bytes]
) -> AsyncGenerator[bytes, None]:
    yield first
    async for data in reads:
        yield data
