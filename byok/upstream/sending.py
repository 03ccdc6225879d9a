"""One HTTP exchange with an upstream: key, deadlines, refusals in our words."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx

from byok import __version__
from byok.chat import Json
from byok.dialects.base import Dialect
from byok.dialects.quirks import DEFAULT, Quirks
from byok.errors import NotReady, UpstreamRefused, UpstreamUnreachable
from byok.upstream.breaker import Breaker
from byok.upstream.failures import translated
from byok.upstream.patience import REMOTE, Patience, too_slow
from byok.upstream.reading import hang_up, limited
from byok.upstream.retry import parse_retry_after
from byok.upstream.transport import CONNECT_SECONDS, Route, Transports
from byok.wire.json_body import parse_json

_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 10.0  # for the text of a refusal; its status says enough
_STREAM_OR_JSON = "text/event-stream, application/json"


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Everything about an upstream but its key.

    `breaker_pause` is for how many seconds one that is down is left alone.
    """

    name: str
    base_url: str
    dialect: Dialect
    quirks: Quirks = DEFAULT
    patience: Patience = REMOTE
    breaker_pause: float = 30.0
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Json = field(default_factory=dict)
    route: Route = field(default_factory=Route)


class KeySource(Protocol):
    """Where the key of an upstream comes from."""

    async def get(self) -> str:
        """Return the key, "" where none is needed.

        Raises:
            KeyMissing: one is needed and none was found.
        """
        ...

    def forget(self) -> None:
        """Look the key up anew next time: the upstream refused it."""
        ...


class Sender:
    """Sends requests to one upstream."""

    def __init__(
        self, spec: UpstreamSpec, transports: Transports, key: KeySource
    ) -> None:
        self._spec = spec
        self._transports = transports
        self._key = key
        self._breaker = Breaker(spec.breaker_pause)
        self._urls: dict[str, httpx.URL] = {}
        self._heads: dict[bool, httpx.Headers] = {}
        self._heads_of = ""

    @asynccontextmanager
    async def opened(
        self, path: str, content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and give the response whose status is 200 to 299.

        With content it is a POST of JSON, else a GET.

        Raises:
            UpstreamError: no connection, no head in time, or another status.
            NotReady: the upstream is left alone for the moment.
        """
        key = await self._key.get()
        response = await self._sent(path, content, key)
        try:
            if response.status_code == 401:
                self._key.forget()
                if (other := await self._key.get()) != key:  # changed meanwhile
                    await hang_up(response)
                    response = await self._sent(path, content, other)
            if not response.is_success:
                raise await self._refusal(response)
            yield response
        finally:
            await hang_up(response)

    async def _sent(self, path: str, content: bytes | None, key: str) -> httpx.Response:
        spec = self._spec
        headers = self._headers(key, has_content=content is not None)
        try:
            self._breaker.check()
        except NotReady as error:
            error.args = (f"{spec.name}: {error}",)
            raise
        try:
            with translated(f"{spec.base_url}/{path}"):
                request = httpx.Request(
                    "GET" if content is None else "POST",
                    self._url(path),
                    headers=headers,
                    # A stream spares httpx the headers that aiohttp adds anyway.
                    stream=httpx.ByteStream(content or b""),
                    extensions={"timeout": {"connect": CONNECT_SECONDS}},
                )
                request.read()
                transport = self._transports.by(spec.route)
                async with asyncio.timeout(spec.patience.first):
                    response = await transport.handle_async_request(request)
        except TimeoutError as error:
            raise too_slow("it did not begin to answer in time.") from error
        except UpstreamUnreachable as error:
            if error.code == "upstream_connect":
                self._breaker.failed()
            raise
        self._breaker.connected()
        return response

    def _headers(self, key: str, *, has_content: bool) -> httpx.Headers:
        """Return the head of a request; it changes only with the key."""
        if key != self._heads_of:
            self._heads, self._heads_of = {}, key
        if has_content not in self._heads:
            spec = self._spec
            headers = {
                "Accept": _STREAM_OR_JSON,
                "Accept-Encoding": "identity",
                "User-Agent": f"byok/{__version__}",
                **spec.headers,
            }
            if key:
                headers |= spec.dialect.auth(key, spec.quirks)
            if has_content:
                headers["Content-Type"] = "application/json"
            self._heads[has_content] = httpx.Headers(headers)
        return self._heads[has_content]

    def _url(self, path: str) -> httpx.URL:
        """Return the whole address; parsing it costs more than one would think."""
        if path not in self._urls:
            self._urls[path] = httpx.URL(f"{self._spec.base_url}/{path}")
        return self._urls[path]

    async def _refusal(self, response: httpx.Response) -> UpstreamRefused:
        status = response.status_code
        if response.is_redirect:
            return UpstreamRefused(
                f"it answered {status}, a redirect, which is never followed.",
                upstream_status=status,
                code="upstream_redirect",
                hint="Put the final address into base_url.",
            )
        raw, seconds = b"", min(self._spec.patience.silence, _ERROR_SECONDS)
        with translated(self._spec.base_url), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                raw = await limited(response, _MAX_ERROR_BYTES, cut=True)
        try:
            body: Any = parse_json(raw)
        except (ValueError, RecursionError):
            text = raw.decode("utf-8", "replace").strip()
            body = "a web page" if text.startswith("<") else text
        asked = response.headers.get("retry-after", "")
        wait = parse_retry_after(asked, time.time()) if asked else None
        return self._spec.dialect.refusal(body, status, wait)
