"""Send a conversation to an upstream over HTTP and read the events of its answer."""

import asyncio
import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx

from byok.chat import ChatRequest, Json
from byok.dialects.base import Dialect, Target
from byok.dialects.quirks import DEFAULT, Quirks
from byok.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamUnreachable,
)
from byok.events import Finish, StreamEvent
from byok.stage import Stage, chain
from byok.upstream.failures import translated
from byok.upstream.reading import at_end, drain, hang_up, limited, taken
from byok.upstream.retry import RetryPolicy, parse_retry_after
from byok.upstream.transport import CONNECT_SECONDS, Route, Transports
from byok.wire.inflate import inflated
from byok.wire.json_body import parse_json, write_json
from byok.wire.sse import SSEDecoder

_MAX_ERROR_BYTES = 64 * 1024
_MAX_LIST_BYTES = 16 * 2**20
_LIST_SECONDS = 12.0
_MAX_MODELS = 1000


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Everything about an upstream but its key; `timeout` is the longest silence."""

    name: str
    base_url: str
    dialect: Dialect
    quirks: Quirks = DEFAULT
    timeout: float = 120.0
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


class HttpUpstream:
    """Upstream over HTTP."""

    def __init__(
        self,
        spec: UpstreamSpec,
        transports: Transports,
        key: KeySource,
        *,
        retry: RetryPolicy | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._spec = spec
        self._transports = transports
        self._key = key
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._refused: dict[str, set[str]] = {}  # model -> parameters it dislikes

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        return self._spec.name

    async def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream; repeats only while nothing was yielded."""
        spec = self._spec
        target = Target(model, spec.quirks, spec.extra_body)
        request = spec.dialect.encode(chat, target)
        attempt = 1
        while True:
            body = spec.dialect.without(request.body, self._refused.get(model, ()))
            yielded = False
            try:
                async with self._opened(request.path, body) as response:
                    stage = inflated(
                        response.headers.get("content-encoding", ""),
                        chain(SSEDecoder(), spec.dialect.decoder(request.tool_names)),
                    )
                    async with aclosing(self._batches(response, stage)) as batches:
                        async for batch in batches:
                            yielded = True
                            yield batch
                return
            except UpstreamError as error:
                if not yielded and self._leaves_out(error, model, body):
                    continue
                if not yielded and await self._waits(error, attempt):
                    attempt += 1
                    continue
                error.args = (f"{spec.name}: {error}",)
                raise

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                async with self._opened("models", None) as response:
                    raw = await limited(response, _MAX_LIST_BYTES)
        except TimeoutError as error:
            raise UpstreamUnreachable(
                f"{self.name}: it did not list its models in time.",
                code="upstream_timeout",
            ) from error
        except UpstreamError as error:
            error.args = (f"{self.name}: {error}",)
            raise
        try:
            return self._spec.dialect.models(parse_json(raw))
        except (ValueError, RecursionError) as error:
            raise UpstreamGarbled(
                f"{self.name}: its list of models is not JSON."
            ) from error

    @asynccontextmanager
    async def _opened(
        self, path: str, body: Mapping[str, Any] | None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and give the response whose status is 200 to 299."""
        spec = self._spec
        client = self._transports.client(spec.route)
        headers = {
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            **spec.headers,
        }
        if key := await self._key.get():
            headers |= spec.dialect.auth(key, spec.quirks)
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = write_json(body)
        url = f"{spec.base_url}/{path}"
        response: httpx.Response | None = None
        try:
            with translated(url):
                request = client.build_request(
                    "POST" if content is not None else "GET",
                    url,
                    headers=headers,
                    content=content,
                    timeout=httpx.Timeout(
                        spec.timeout, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS
                    ),
                )
                response = await client.send(request, stream=True)
            if not response.is_success:
                if response.status_code == 401:
                    self._key.forget()
                raise await self._refusal(response)
            yield response
        finally:
            if response is not None:
                await hang_up(response)

    async def _batches(
        self, response: httpx.Response, stage: Stage[bytes, StreamEvent]
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of each network read that has any.

        A connection that breaks is an end like any other: what was finished by then is
        whole, and only if it was not the break is an error.
        """
        lost: UpstreamUnreachable | None = None
        reader = response.aiter_raw()
        try:
            with translated(self._spec.base_url):
                async for data in reader:
                    batch, failure = taken(stage, data)
                    if batch:
                        yield batch
                    if failure:
                        raise failure
                    if batch and isinstance(batch[-1], Finish):
                        await drain(reader)
                        return
        except UpstreamUnreachable as error:
            lost = error
        batch, failure = taken(stage, b"")
        if batch:
            yield batch
        if failure:
            raise at_end(lost, failure)

    async def _refusal(self, response: httpx.Response) -> UpstreamRefused:
        status = response.status_code
        if response.is_redirect:
            return UpstreamRefused(
                f"it answered {status}, a redirect, which is never followed.",
                upstream_status=status,
                code="upstream_redirect",
                hint="Put the final address into base_url.",
            )
        with translated(str(response.url)):
            raw = await limited(response, _MAX_ERROR_BYTES, cut=True)
        try:
            body: Any = parse_json(raw)
        except (ValueError, RecursionError):
            text = raw.decode("utf-8", "replace").strip()
            body = "a web page" if text.startswith("<") else text
        asked = response.headers.get("retry-after", "")
        wait = parse_retry_after(asked, time.time()) if asked else None
        return self._spec.dialect.refusal(body, status, wait)

    def _leaves_out(self, error: UpstreamError, model: str, body: Json) -> bool:
        """Remember a parameter that the model refused by name; False if none is."""
        if not isinstance(error, UpstreamRefused):
            return False
        spec = self._spec
        name = spec.dialect.refused_parameter(body, str(error), spec.extra_body)
        if error.upstream_status not in (400, 422) or not name:
            return False
        if len(self._refused) > _MAX_MODELS:
            self._refused.clear()
        self._refused.setdefault(model, set()).add(name)
        return True

    async def _waits(self, error: UpstreamError, attempt: int) -> bool:
        """Wait before the next attempt; False when there is none."""
        seconds = self._retry.wait(error, attempt, random.random())  # noqa: S311
        if seconds is None:
            return False
        await self._sleep(seconds)
        return True
