"""One HTTP exchange with an upstream: its head, and refusals in our words."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from byok import __version__
from byok.chat import Json
from byok.dialects.base import Dialect
from byok.dialects.fim_mode import FimMode
from byok.dialects.quirks import DEFAULT, Quirks
from byok.errors import UpstreamRefused
from byok.upstream.failures import translate_errors
from byok.upstream.http_body import hang_up, read_limited
from byok.upstream.http_call import Callee, Caller, KeySource, redirect_error
from byok.upstream.retry import retry_after
from byok.upstream.timeouts import REMOTE, Timeouts
from byok.upstream.transport import Route, Transports
from byok.wire.json_body import parse_json

_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 10.0  # for the text of a refusal; its status says enough
_STREAM_OR_JSON = "text/event-stream, application/json"


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Everything about an upstream but its key.

    `query` is added to every address. `breaker_pause` is for how many seconds one that
    is down is left alone, `fim_modes` the ways to fill gaps that are tried in turn.
    """

    name: str
    base_url: str
    dialect: Dialect
    quirks: Quirks = DEFAULT
    timeouts: Timeouts = REMOTE
    breaker_pause: float = 30.0
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Json = field(default_factory=dict)
    route: Route = field(default_factory=Route)
    fim_modes: tuple[FimMode, ...] = (FimMode.CHAT,)

    def address(self, path: str) -> str:
        """Return the address of a path; one with "/" in front stands beside /v1."""
        if path.startswith("/"):
            return self.base_url.removesuffix("/v1") + path
        return f"{self.base_url}/{path}"

    @property
    def callee(self) -> Callee:
        """What HTTP needs to know of it."""
        first, pause = self.timeouts.first_byte, self.breaker_pause
        return Callee(self.name, self.base_url, first, pause, self.route)


class Sender:
    """Sends requests to one upstream."""

    def __init__(
        self, spec: UpstreamSpec, transports: Transports, key: KeySource
    ) -> None:
        self._spec = spec
        self._caller = Caller(spec.callee, transports, key)
        self._urls: dict[str, httpx.URL] = {}
        self._heads: dict[bool, httpx.Headers] = {}
        self._heads_of = ""

    @asynccontextmanager
    async def open(
        self, path: str, content: bytes | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and give the response whose status is 200 to 299.

        With content it is a POST of JSON, else a GET.

        Raises:
            UpstreamError: no connection, no head in time, or another status.
            NotReady: the upstream is left alone for the moment.
        """
        head = partial(self._headers, has_content=content is not None)
        response = await self._caller.call(self._url(path), content, head)
        try:
            if not response.is_success:
                raise await self._refusal(response)
            yield response
        finally:
            await hang_up(response)

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
            url = self._spec.address(path)
            with translate_errors(url):
                self._urls[path] = httpx.URL(url).copy_merge_params(self._spec.query)
        return self._urls[path]

    async def _refusal(self, response: httpx.Response) -> UpstreamRefused:
        status = response.status_code
        if response.is_redirect:
            return redirect_error(status)
        raw, seconds = b"", min(self._spec.timeouts.idle, _ERROR_SECONDS)
        with translate_errors(self._spec.base_url), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                raw = await read_limited(response, _MAX_ERROR_BYTES, cut=True)
        try:
            body: Any = parse_json(raw)
        except (ValueError, RecursionError):
            text = raw.decode("utf-8", "replace").strip()
            body = "a web page" if text.startswith("<") else text
        wait = retry_after(response.headers, time.time())
        return self._spec.dialect.refusal(body, status, wait)
