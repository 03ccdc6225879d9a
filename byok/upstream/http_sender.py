"""Sends one HTTP request to an upstream: URL, key, headers, body; reads refusals."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import httpx

from byok import __version__
from byok.core.bounded import BoundedMap
from byok.core.errors import ConnectFailed, RefusalKind, UpstreamRefused
from byok.core.record import Head, Hop, current_record
from byok.core.urls import is_loopback
from byok.core.wire.json_body import parse_json
from byok.dialects.base import ErrorResponse
from byok.upstream.breaker import CircuitBreaker
from byok.upstream.failures import is_refused, translate_errors
from byok.upstream.http_body import hang_up, read_limited
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.timeouts import NOT_BEGUN, REMOTE, Timeouts, too_slow
from byok.upstream.transport import Route, Transports

_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 10.0  # to read the text of a refusal; its status says enough
_MAX_CACHED = 256  # URLs, some of which contain a model's name; and request headers
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class KeySource(Protocol):
    """The source of an upstream's API key."""

    async def get(self) -> str:
        """Return the key, "" if none is needed.

        Raises:
            KeyMissing: a key is needed, and there is none.
        """
        ...

    def forget(self) -> None:
        """Discard a key that the upstream refused; the next `get` looks it up again."""
        ...


class RequestKey(KeySource, Protocol):
    """The key of one request."""

    def replace(self, seconds: float) -> bool:
        """Start a cooldown of the key and use another one; False if there is none."""
        ...


class UpstreamKeys(KeySource, Protocol):
    """The keys of an upstream; `get` returns the one for requests of its own."""

    def begin(self, conversation: str = "") -> RequestKey:
        """Return the key for a request of a conversation, "" for none."""
        ...


class Caller:
    """Calls one server. Redirects are not followed: they could leak the key."""

    def __init__(
        self,
        transports: Transports,
        key: KeySource,
        breaker: CircuitBreaker,
        *,
        route: Route,
        timeouts: Timeouts = REMOTE,
    ) -> None:
        self._transports = transports
        self._key = key
        self._breaker = breaker
        self._route = route
        self._timeouts = timeouts

    async def call(
        self,
        url: httpx.URL,
        content: bytes | None,
        head: Callable[[str], httpx.Headers],
        source: KeySource | None = None,
        timeouts: Timeouts | None = None,
    ) -> httpx.Response:
        """Send a request and return the response, with any status. Close it when done.

        A request with content is a POST, else a GET. `head` returns the headers for a
        key. `source` and `timeouts` replace the caller's for this request. After a 401
        the key is looked up again, and the request is repeated if the key changed.

        Raises:
            UpstreamUnreachable: no connection, or no response head in time.
            NotReady: the circuit breaker is open.
        """
        source = source or self._key
        timeouts = timeouts or self._timeouts
        key = await source.get()
        response = await self._send(url, content, head(key), timeouts)
        if response.status_code != 401:
            return response
        source.forget()
        try:
            new_key = await source.get()
        except BaseException:
            await hang_up(response)
            raise
        if new_key == key:
            return response
        await hang_up(response)
        return await self._send(url, content, head(new_key), timeouts)

    async def _send(
        self,
        url: httpx.URL,
        content: bytes | None,
        headers: httpx.Headers,
        timeouts: Timeouts,
    ) -> httpx.Response:
        # A closed breaker, the usual case, lets every request pass.
        breaker = nullcontext() if self._breaker.is_closed else self._breaker.attempt()
        async with breaker:
            try:
                with translate_errors(url):
                    request = httpx.Request(
                        "GET" if content is None else "POST",
                        url,
                        # A stream spares httpx the headers that aiohttp adds anyway.
                        stream=httpx.ByteStream(content or b""),
                        extensions={"timeout": {"connect": timeouts.connect}},
                    )
                    request.headers = headers  # a copy would be decoded again
                    request.read()
                    if tap := current_record().tap:
                        tap(Hop.TO_UPSTREAM, _head(f"{request.method} {url}", headers))
                    transport = self._transports.by(self._route)
                    async with asyncio.timeout(timeouts.first_byte):
                        response = await transport.handle_async_request(request)
            except TimeoutError as error:
                raise too_slow(NOT_BEGUN) from error
            except ConnectFailed as error:
                # A local server that is not running may be started at any moment.
                if not (is_refused(error) and is_loopback(str(url))):
                    self._breaker.record_failure(error)
                raise
            self._breaker.record_success()
        if tap := current_record().tap:
            head = _head(str(response.status_code), response.headers)
            tap(Hop.FROM_UPSTREAM, head)
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


class Sender:
    """Sends requests to one upstream."""

    def __init__(
        self, spec: UpstreamSpec, transports: Transports, key: KeySource
    ) -> None:
        self._spec = spec
        self.breaker = CircuitBreaker(spec.breaker_pause, upstream=spec.name)
        self._caller = Caller(
            transports, key, self.breaker, route=spec.route, timeouts=spec.timeouts
        )
        self._urls = BoundedMap[str, httpx.URL](_MAX_CACHED)
        self._heads = BoundedMap[Hashable, httpx.Headers](_MAX_CACHED)

    @asynccontextmanager
    async def open(
        self,
        api: Api,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        key: KeySource | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request as `send` does, and yield its response until it is closed."""
        response = await self.send(api, path, content, headers, key)
        del content  # many megabytes, and the answer may take minutes
        try:
            yield response
        finally:
            await hang_up(response)

    async def send(
        self,
        api: Api,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        key: KeySource | None = None,
        *,
        timeouts: Timeouts | None = None,
    ) -> httpx.Response:
        """Send a request, and return its response if the status is 200 to 299.

        A request with content is a POST of JSON, else a GET. `headers`, `key` and
        `timeouts` are for this request alone. Close the response by `hang_up`.

        Raises:
            UpstreamError: no connection, no response head in time, or another status.
            NotReady: the circuit breaker is open.
        """
        head = partial(self._head, api, headers, has_content=content is not None)
        url = self._url(api, path)
        response = await self._caller.call(url, content, head, key, timeouts)
        if response.is_success:
            return response
        try:
            raise await self._refusal(api, response)
        finally:
            await hang_up(response)

    def _head(
        self, api: Api, own: Mapping[str, str], key: str, *, has_content: bool
    ) -> httpx.Headers:
        """Return the headers of a request, which are cached."""
        cache_key = (key, api.dialect.name, has_content, *own.items())
        if (head := self._heads.get(cache_key)) is None:
            dialect = api.dialect
            bare, with_key = dialect.headers(""), dialect.headers(key)
            head = httpx.Headers(
                {"Accept-Encoding": "identity", "User-Agent": f"byok/{__version__}"}
            )
            for headers in (bare, own, self._spec.headers):
                head.update(headers)
            # The user's headers win, except over those that contain the key.
            head.update(dict(with_key.items() - bare.items()))
            if has_content:
                head["Content-Type"] = "application/json"
            self._heads[cache_key] = head
        return head

    def _url(self, api: Api, path: str) -> httpx.URL:
        """Return the parsed URL of a path; parsing is slow, so it is cached."""
        url = api.url(path)
        if (parsed := self._urls.get(url)) is None:
            with translate_errors(url):
                parsed = httpx.URL(url).copy_merge_params(self._spec.query)
            self._urls[url] = parsed
        return parsed

    async def _refusal(self, api: Api, response: httpx.Response) -> UpstreamRefused:
        status = response.status_code
        if response.is_redirect:
            return redirect_error(status)
        raw, seconds = b"", min(self._spec.timeouts.idle, _ERROR_SECONDS)
        with translate_errors(api.base_url), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                raw = await read_limited(response, _MAX_ERROR_BYTES, cut=True)
                current_record().tap_answer(raw)
        try:
            body: Any = parse_json(raw)
        except (ValueError, RecursionError):
            body = raw.decode("utf-8", "replace").strip()
        return api.dialect.refusal(
            ErrorResponse(status, body, response.headers, time.time())
        )
