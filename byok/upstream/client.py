"""Send a conversation to an upstream over HTTP and read the events of its answer."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx

from byok.chat import ChatRequest
from byok.dialects.base import Dialect, Target
from byok.errors import (
    UpstreamError,
    UpstreamGarbled,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.events import Finish, StreamEvent
from byok.record import current_record
from byok.stage import Stage, chain
from byok.upstream.base import Forwarded
from byok.upstream.failures import missing_path_hint, translate_errors
from byok.upstream.fim import FimClient
from byok.upstream.http_body import (
    at_end,
    describing_headers,
    drain,
    feed_read,
    pass_on,
    read_limited,
)
from byok.upstream.http_call import KeySource
from byok.upstream.http_sender import Sender, UpstreamSpec
from byok.upstream.model_windows import Windows
from byok.upstream.remedies import Remedies
from byok.upstream.retry import RetryPolicy
from byok.upstream.timeouts import Watch
from byok.upstream.transport import Transports, body_of
from byok.wire.inflate import with_inflate
from byok.wire.json_body import parse_json, write_json
from byok.wire.sse import SSEDecoder

MAX_ANSWER_BYTES = 64 * 2**20  # of a streamed answer, events and all
_MAX_LIST_BYTES = 16 * 2**20
_LIST_SECONDS = 12.0


def _too_large() -> UpstreamGarbled:
    return UpstreamGarbled(
        f"its answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB.",
        code="upstream_event_too_large",
    )


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
        self._sender = Sender(spec, transports, key)
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._remedies = Remedies(spec)
        self.windows = Windows(self._sender, spec.quirks.loaded)
        self._filler = FimClient(spec.name, spec.fim_modes, spec.dialect, self._stream)

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        return self._spec.name

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        if chat.fim is not None:
            return self._filler.stream(chat, model)
        return self._stream(self._spec.dialect, chat, model)

    async def _stream(
        self, dialect: Dialect, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Ask in a dialect; repeats only while nothing was yielded."""
        spec = self._spec
        target = Target(model, spec.quirks, spec.extra_body, spec.name)
        request = dialect.encode(chat, target)
        path, tool_names, origin = request.path, request.tool_names, request.origin
        remedies = self._remedies.of(dialect, model, agent=chat.agent)
        content = write_json(remedies.apply_known(request.body))
        del chat, request  # they may be large; the bytes are all that is needed
        attempt = 1
        while True:
            yielded = False
            current_record().note_attempt(content)
            try:
                async with self._sender.open(path, content) as response:
                    stage = with_inflate(
                        response.headers.get("content-encoding", ""),
                        chain(SSEDecoder(), dialect.decoder(tool_names, origin)),
                    )
                    async with aclosing(self._batches(response, stage)) as batches:
                        async for batch in batches:
                            if not yielded:
                                remedies.remember()
                                batch = [*remedies.notices, *batch]
                            yielded = True
                            yield batch
                return
            except UpstreamError as error:
                if not yielded and (body := remedies.next_body(error, content)):
                    content = write_json(body)
                    continue
                if not yielded and await self._waits(error, attempt):
                    attempt += 1
                    continue
                error.upstream = spec.name
                raise

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                async with self._sender.open("models") as response:
                    raw = await read_limited(response, _MAX_LIST_BYTES)
        except TimeoutError as error:
            raise UpstreamTimeout(
                "it did not list its models in time.", upstream=self.name
            ) from error
        except UpstreamError as error:
            error.upstream = self.name
            raise
        try:
            body = parse_json(raw)
            self.windows.set_listed(self._spec.dialect.windows(body))
            return self._spec.dialect.models(body)
        except (ValueError, RecursionError) as error:
            raise UpstreamGarbled(
                "its list of models is not JSON.", upstream=self.name
            ) from error

    async def _batches(
        self, response: httpx.Response, stage: Stage[bytes, StreamEvent]
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of each network read that has any.

        A connection that breaks is an end like any other: what was finished by then is
        whole, and only if it was not the break is an error.
        """
        lost: UpstreamUnreachable | None = None
        body, size = body_of(response), 0
        read = current_record().tap_reads(body.read)
        with Watch(self._spec.timeouts, body.abort) as watch:
            try:
                with translate_errors(self._spec.base_url):
                    while data := await read():
                        if (size := size + len(data)) > MAX_ANSWER_BYTES:
                            raise _too_large()
                        batch, failure = feed_read(stage, data)
                        watch.note_bytes(told=bool(batch))
                        if batch:
                            yield batch
                        if failure:
                            raise failure
                        if batch and isinstance(batch[-1], Finish):
                            if not body.is_at_end:
                                await drain(body.read)
                            return
            except UpstreamUnreachable as error:
                lost = watch.failure or error
        batch, failure = feed_read(stage, b"")
        if batch:
            yield batch
        if failure:
            raise at_end(lost, failure)

    @asynccontextmanager
    async def forward(self, path: str, content: bytes) -> AsyncIterator[Forwarded]:
        """See Upstream.forward; repeats only until the answer begins."""
        attempt = 1
        async with AsyncExitStack() as stack:
            while True:
                current_record().note_attempt(content)
                try:
                    sent = self._sender.open(path, content)
                    response = await stack.enter_async_context(sent)
                    break
                except UpstreamError as error:
                    if not await self._waits(error, attempt):
                        error.upstream = self.name
                        if hint := missing_path_hint(error, path):
                            raise error.with_hint(hint) from error
                        raise
                    attempt += 1
            spec = self._spec
            reads = pass_on(response, spec.name, spec.base_url, spec.timeouts)
            async with aclosing(reads):
                yield Forwarded(describing_headers(response), reads)

    async def _waits(self, error: UpstreamError, attempt: int) -> bool:
        """Wait before the next attempt; False when there is none."""
        seconds = self._retry.wait(error, attempt, random.random())  # noqa: S311
        if seconds is None:
            return False
        await self._sleep(seconds)
        return True
