"""Send a conversation to an upstream over HTTP and read the events of its answer."""

import asyncio
import random
import ssl
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import orjson

from byok.chat import ChatRequest, Json
from byok.dialects.base import Dialect, Target
from byok.dialects.openai_errors import refusal_of
from byok.dialects.openai_ladder import refused_parameter, without
from byok.dialects.quirks import DEFAULT, Quirks
from byok.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamUnreachable,
)
from byok.events import Finish, StreamEvent
from byok.stage import Stage, chain
from byok.upstream.retry import RetryPolicy, parse_retry_after
from byok.upstream.transport import CONNECT_SECONDS, Route, Transports
from byok.wire.inflate import Inflate
from byok.wire.json_body import parse_json
from byok.wire.sse import SSEDecoder

_MAX_ERROR_BYTES = 64 * 1024
_MAX_LIST_BYTES = 16 * 2**20
_DRAIN_SECONDS = 0.02
_LIST_SECONDS = 12.0


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

    async def close(self) -> None:
        """Nothing to do: the transports are shared."""

    async def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream; repeats only while nothing was yielded."""
        spec = self._spec
        target = Target(model, spec.quirks, spec.extra_body)
        request = spec.dialect.encode(chat, target)
        attempt = 0
        while True:
            attempt += 1
            body = without(request.body, self._refused.get(model, ()))
            yielded = False
            try:
                async with self._opened(request.path, body) as response:
                    coding = response.headers.get("content-encoding", "")
                    stage = chain(
                        chain(Inflate(coding), SSEDecoder()),
                        spec.dialect.decoder(request.tool_names),
                    )
                    reader = response.aiter_raw()
                    lost: list[UpstreamError] = []
                    async for data in self._reads(reader, lost):
                        batch, failure = _taken(stage, data)
                        if batch:
                            yielded = True
                            yield batch
                        if failure:
                            raise lost[0] if lost else failure
                        if batch and isinstance(batch[-1], Finish):
                            await _drain(reader)
                            return
                return
            except UpstreamError as error:
                if yielded or not await self._again(error, attempt, model, body):
                    error.args = (f"{spec.name}: {error}",)
                    raise

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                async with self._opened("models", None) as response:
                    raw = await _limited(response, _MAX_LIST_BYTES)
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
            content = orjson.dumps(body)
        url = f"{spec.base_url}/{path}"
        response: httpx.Response | None = None
        try:
            with _translated(url):
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
                await _hang_up(response)

    async def _reads(
        self, reader: AsyncIterator[bytes], lost: list[UpstreamError]
    ) -> AsyncIterator[bytes]:
        """Give each network read, and b"" at the end of the answer.

        A connection that breaks is such an end too: what was finished by then is
        whole. The error is put into `lost` for the case that it was not.
        """
        try:
            with _translated(self._spec.base_url):
                async for data in reader:
                    yield data
        except UpstreamError as error:
            lost.append(error)
        yield b""

    async def _refusal(self, response: httpx.Response) -> UpstreamRefused:
        status = response.status_code
        if response.is_redirect:
            return UpstreamRefused(
                f"it answered {status}, a redirect, which is never followed.",
                upstream_status=status,
                code="upstream_redirect",
                hint="Put the final address into base_url.",
            )
        with _translated(str(response.url)):
            raw = await _limited(response, _MAX_ERROR_BYTES, cut=True)
        try:
            body: Any = parse_json(raw)
        except (ValueError, RecursionError):
            text = raw.decode("utf-8", "replace").strip()
            body = "a web page" if text.startswith("<") else text
        asked = response.headers.get("retry-after", "")
        wait = parse_retry_after(asked, time.time()) if asked else None
        return refusal_of(body, status, wait)

    async def _again(
        self, error: UpstreamError, attempt: int, model: str, body: Json
    ) -> bool:
        """Prepare to send the request once more; False when that is no use."""
        if isinstance(error, UpstreamRefused) and error.upstream_status in (400, 422):
            extra = self._spec.extra_body
            name = refused_parameter(body, str(error), extra)
            if name and name not in self._refused.get(model, ()):
                self._refused.setdefault(model, set()).add(name)
                return True
            return False
        seconds = self._retry.wait(error, attempt, random.random())  # noqa: S311
        if seconds is None:
            return False
        await self._sleep(seconds)
        return True


def _taken(
    stage: Stage[bytes, StreamEvent], data: bytes
) -> tuple[list[StreamEvent], UpstreamError | None]:
    """Feed one read (b"" ends the answer); keep what came before a failure."""
    batch: list[StreamEvent] = []
    events: Iterable[StreamEvent] = stage.feed(data) if data else stage.flush()
    try:
        for event in events:
            batch.append(event)
    except UpstreamError as error:
        return batch, error
    return batch, None


async def _drain(reader: AsyncIterator[bytes]) -> None:
    """Read on to the end of a finished answer, so that the connection is kept."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in reader:
                pass
    except (TimeoutError, httpx.HTTPError):
        return  # it stays open, or broke: the answer is whole all the same


async def _hang_up(response: httpx.Response) -> None:
    try:
        await response.aclose()
    except httpx.HTTPError:
        return  # the connection broke; that is as good as closed


async def _limited(response: httpx.Response, limit: int, *, cut: bool = False) -> bytes:
    raw = bytearray()
    inflate = Inflate(response.headers.get("content-encoding", ""))
    async for data in response.aiter_raw():
        for plain in inflate.feed(data):
            raw += plain
        if len(raw) > limit:
            if cut:
                break
            raise UpstreamGarbled("its answer is too large.")
    return bytes(raw[:limit])


class _translated:
    """Turns httpx's errors into ours, at the one edge where they enter."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, httpx.HTTPError):
            raise _unreachable(error, self._url) from error
        if isinstance(error, httpx.InvalidURL):
            raise UpstreamUnreachable(f"{self._url} is no address.") from error


def _unreachable(error: httpx.HTTPError, url: str) -> UpstreamUnreachable:
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    if any(isinstance(c, (ssl.SSLError, ssl.CertificateError)) for c in causes):
        return UpstreamUnreachable(
            f"the TLS certificate of {url} is not trusted.",
            code="upstream_tls",
            hint="If your company inspects TLS, set ca_file to its certificate.",
            retryable=False,
        )
    match error:
        case httpx.ConnectError() | httpx.ProxyError():
            return UpstreamUnreachable(
                f"nothing answers at {url}.",
                code="upstream_connect",
                hint="Is it running, and is base_url right?",
            )
        case httpx.ReadTimeout() | httpx.PoolTimeout() | httpx.WriteTimeout():
            return UpstreamUnreachable(
                "it fell silent in the middle of a request.",
                code="upstream_timeout",
                hint="A higher timeout for this upstream may help.",
            )
        case _:
            return UpstreamUnreachable(
                "the connection to it was lost.", code="upstream_cut"
            )
