"""HTTP calls to one server: its API key, timeouts and circuit breaker."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from byok.errors import ConnectFailed, RefusalKind, UpstreamRefused
from byok.record import Head, Hop, current_record
from byok.upstream.circuit_breaker import CircuitBreaker
from byok.upstream.failures import is_refused, translate_errors
from byok.upstream.http_body import hang_up
from byok.upstream.timeouts import NOT_BEGUN, REMOTE, Timeouts, too_slow
from byok.upstream.transport import Route, Transports
from byok.urls import is_loopback


@dataclass(frozen=True, slots=True)
class Callee:
    """One HTTP server: its name for users, where it is and how it is reached."""

    name: str
    base_url: str
    timeouts: Timeouts = REMOTE
    breaker_pause: float = 30.0
    route: Route = field(default_factory=Route)


class KeySource(Protocol):
    """The source of an upstream's API key."""

    async def get(self) -> str:
        """Return the key, "" if none is needed.

        Raises:
            KeyMissing: one is needed and none was found.
        """
        ...

    def forget(self) -> None:
        """Look the key up again next time: the upstream refused it."""
        ...


class RequestKey(KeySource, Protocol):
    """The key of one request."""

    def replace(self, seconds: float) -> bool:
        """Let the key rest and use another one; False if no other is ready."""
        ...


class UpstreamKeys(KeySource, Protocol):
    """The keys of an upstream; one of them is used for requests without a choice."""

    def begin(self, conversation: str = "") -> RequestKey:
        """Return the key for a request; "" is no conversation."""
        ...


class Caller:
    """Calls one server. Redirects are not followed: they could leak the key."""

    def __init__(
        self,
        callee: Callee,
        transports: Transports,
        key: KeySource,
        *,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._callee = callee
        self._transports = transports
        self._key = key
        self._breaker = breaker or CircuitBreaker(
            callee.breaker_pause, upstream=callee.name
        )

    @property
    def rest_seconds(self) -> float:
        """For how long the server is not asked, because it could not be reached."""
        return max(0.0, self._breaker.seconds_left())

    async def call(
        self,
        url: httpx.URL,
        content: bytes | None,
        head: Callable[[str], httpx.Headers],
        source: KeySource | None = None,
        timeouts: Timeouts | None = None,
    ) -> httpx.Response:
        """Send a request and return the response, with any status. Close it when done.

        With content it is a POST, else a GET; `head` returns the headers for a key,
        which comes from `source` where the request has one of its own, as `timeouts`.
        After a 401 the key is looked up again, and the request repeated if it changed.

        Raises:
            UpstreamUnreachable: no connection, or no response head in time.
            NotReady: the circuit breaker is open.
        """
        source = source or self._key
        timeouts = timeouts or self._callee.timeouts
        key = await source.get()
        response = await self._send(url, content, head(key), timeouts)
        if response.status_code != 401:
            return response
        source.forget()
        try:
            other = await source.get()
        except BaseException:
            await hang_up(response)
            raise
        if other == key:
            return response
        await hang_up(response)
        return await self._send(url, content, head(other), timeouts)

    async def _send(
        self,
        url: httpx.URL,
        content: bytes | None,
        headers: httpx.Headers,
        timeouts: Timeouts,
    ) -> httpx.Response:
        async with self._breaker.attempt():
            return await self._exchange(url, content, headers, timeouts)

    async def _exchange(
        self,
        url: httpx.URL,
        content: bytes | None,
        headers: httpx.Headers,
        timeouts: Timeouts,
    ) -> httpx.Response:
        callee = self._callee
        try:
            with translate_errors(url):
                request = httpx.Request(
                    "GET" if content is None else "POST",
                    url,
                    headers=headers,
                    # A stream spares httpx the headers that aiohttp adds anyway.
                    stream=httpx.ByteStream(content or b""),
                    extensions={"timeout": {"connect": timeouts.connect}},
                )
                request.read()
                if tap := current_record().head_tap:
                    line = f"{request.method} {url}"
                    tap.take_head(Hop.TO_UPSTREAM, _head(line, headers))
                transport = self._transports.by(callee.route)
                async with asyncio.timeout(timeouts.first_byte):
                    response = await transport.handle_async_request(request)
        except TimeoutError as error:
            raise too_slow(NOT_BEGUN) from error
        except ConnectFailed as error:
            # A local server that is not running may be started any moment.
            if not (is_refused(error) and is_loopback(callee.base_url)):
                self._breaker.record_failure(error)
            raise
        self._breaker.record_success()
        if tap := current_record().head_tap:
            line = str(response.status_code)
            tap.take_head(Hop.FROM_UPSTREAM, _head(line, response.headers))
        return response


def _head(line: str, headers: httpx.Headers) -> Head:
    return Head(line, tuple(headers.multi_items()))


def redirect_error(status: int) -> UpstreamRefused:
    """Return the error for a redirect."""
    return UpstreamRefused(
        f"it answered {status}, a redirect, which is never followed.",
        upstream_status=status,
        kind=RefusalKind.REDIRECT,
        hint="Put the final address into base_url.",
    )
