"""Sends a request to an upstream's API: URL, headers, body; reads error responses."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx

from byok import __version__
from byok.core.bounded import BoundedMap
from byok.core.errors import UpstreamRefused
from byok.core.record import current_record
from byok.core.wire.json_body import parse_json
from byok.dialects.base import ErrorResponse
from byok.upstream.failures import translate_errors
from byok.upstream.http_call import (
    Caller,
    KeySource,
    Timeouts,
    hang_up,
    read_limited,
    redirect_error,
)
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports

_MAX_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 10.0  # for the text of a refusal; its status says enough
_MAX_KEPT = 256  # URLs, as some have a model's name in them; and heads of requests
_NO_HEADERS: Mapping[str, str] = {}


class Sender:
    """Sends requests to one upstream."""

    def __init__(
        self, spec: UpstreamSpec, transports: Transports, key: KeySource
    ) -> None:
        self._spec = spec
        self._caller = Caller(spec.callee, transports, key)
        self._urls = BoundedMap[str, httpx.URL](_MAX_KEPT)
        self._heads = BoundedMap[Hashable, httpx.Headers](_MAX_KEPT)

    @property
    def rest_seconds(self) -> float:
        """For how long nothing is sent, because the server could not be reached."""
        return self._caller.rest_seconds

    @asynccontextmanager
    async def open(
        self,
        api: Api,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
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
        headers: Mapping[str, str] = _NO_HEADERS,
        key: KeySource | None = None,
        *,
        timeouts: Timeouts | None = None,
    ) -> httpx.Response:
        """Send a request, and return its response if the status is 200 to 299.

        With content it is a POST of JSON, else a GET. `headers`, `key` and `timeouts`
        are those of this request alone. The response is to be closed by `hang_up`.

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
        """Return the headers of a request; equal ones are built once."""
        kind = (key, api.dialect.name, has_content, *own.items())
        if (head := self._heads.get(kind)) is None:
            dialect = api.dialect
            bare, with_key = dialect.headers(""), dialect.headers(key)
            head = httpx.Headers(
                {"Accept-Encoding": "identity", "User-Agent": f"byok/{__version__}"}
            )
            for headers in (bare, own, self._spec.headers):
                head.update(headers)
            # The user's headers win, but for those that carry the key.
            head.update(dict(with_key.items() - bare.items()))
            if has_content:
                head["Content-Type"] = "application/json"
            self._heads[kind] = head
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
