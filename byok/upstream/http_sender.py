"""Requests to an upstream's APIs: URLs, headers and error responses."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from yarl import URL

from byok import __version__
from byok.core.bounded import BoundedMap
from byok.core.errors import UpstreamRefused, UpstreamUnreachable
from byok.core.record import current_record
from byok.core.wire.json_body import parse_json
from byok.dialects.base import ErrorResponse
from byok.upstream.failures import translate_errors
from byok.upstream.http_call import (
    Caller,
    KeySource,
    Timeouts,
    read_limited,
    redirect_error,
)
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Response, Transports

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
        self._urls = BoundedMap[str, str](_MAX_KEPT)
        self._heads = BoundedMap[Hashable, Mapping[str, str]](_MAX_KEPT)

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
    ) -> AsyncIterator[Response]:
        """Send a request as `send` does, and yield its response until it is closed."""
        response = await self.send(api, path, content, headers, key)
        del content  # many megabytes, and the answer may take minutes
        try:
            yield response
        finally:
            await response.close()

    async def send(
        self,
        api: Api,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        key: KeySource | None = None,
        *,
        timeouts: Timeouts | None = None,
    ) -> Response:
        """Send a request, and return its response if the status is 200 to 299.

        With content it is a POST of JSON, else a GET. `headers`, `key` and `timeouts`
        are those of this request alone. Close the response when done.

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
            await response.close()

    def _head(
        self, api: Api, own: Mapping[str, str], key: str, *, has_content: bool
    ) -> Mapping[str, str]:
        """Return the headers of a request; equal ones are built once."""
        kind = (key, api.dialect.name, has_content, *own.items())
        if (head := self._heads.get(kind)) is None:
            dialect = api.dialect
            bare, with_key = dialect.headers(""), dialect.headers(key)
            head = {"accept-encoding": "identity", "user-agent": f"byok/{__version__}"}
            # The user's headers win, but for those that carry the key.
            of_key = dict(with_key.items() - bare.items())
            for headers in (bare, own, self._spec.headers, of_key):
                given = {name.lower(): text for name, text in headers.items()}
                head = {n: t for n, t in head.items() if n not in given} | given
            if has_content:
                head["content-type"] = "application/json"
            self._heads[kind] = head
        return head

    def _url(self, api: Api, path: str) -> str:
        """Return the URL of a path, with the user's query; it is made once."""
        url = api.url(path)
        if (whole := self._urls.get(url)) is None:
            try:
                whole = str(URL(url).update_query(self._spec.query))
            except ValueError as error:
                raise UpstreamUnreachable(
                    f"{url} is not a valid address.", retryable=False
                ) from error
            self._urls[url] = whole
        return whole

    async def _refusal(self, api: Api, response: Response) -> UpstreamRefused:
        status = response.status
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
