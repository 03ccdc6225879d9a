"""An upstream over HTTP: sends requests, streams events, retries, lists models."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx

from byok.chat import ChatRequest
from byok.dialects.base import Codec
from byok.errors import (
    BadRequest,
    UpstreamError,
    UpstreamGarbled,
    UpstreamUnreachable,
)
from byok.events import Finish, StreamEvent
from byok.record import current_record
from byok.stage import Stage
from byok.upstream.attempts import Attempts
from byok.upstream.base import NO_HEADERS, ForwardedResponse
from byok.upstream.fact_sources import fact_sources
from byok.upstream.failures import missing_path_hint, translate_errors
from byok.upstream.fetch_models import fetch_models
from byok.upstream.fim import FimClient
from byok.upstream.http_body import (
    at_end,
    describing_headers,
    drain,
    feed_read,
    pass_on,
)
from byok.upstream.http_call import RequestKey, UpstreamKeys
from byok.upstream.http_sender import Sender
from byok.upstream.model_facts import KnownModels
from byok.upstream.profiles import Profiles
from byok.upstream.prompt_changes import PromptChanges
from byok.upstream.remedies import Remedies
from byok.upstream.retry import Patience, patience_of, rest_of_key
from byok.upstream.spec import UpstreamSpec
from byok.upstream.timeouts import Timeouts, Watch
from byok.upstream.transport import Transports, body_of
from byok.wire.inflate import with_inflate

_log = logging.getLogger(__name__)
MAX_ANSWER_BYTES = 64 * 2**20  # of a streamed answer, events and all


def _too_large() -> UpstreamGarbled:
    return UpstreamGarbled(
        f"its answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB.",
        code="upstream_event_too_large",
    )


def _replaces(key: RequestKey, error: UpstreamError) -> bool:
    """Replace a key that is refused; False if no other one is ready."""
    rest = rest_of_key(error)
    return rest is not None and key.replace(rest)


class HttpUpstream:
    """Upstream that is reached over HTTP, in any dialect.

    `on_error` is told of every failure, also of those that byok found a way around.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        transports: Transports,
        keys: UpstreamKeys,
        *,
        profiles: Profiles | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._keys = keys
        self._sender = Sender(spec, transports, keys)
        self._sleep = sleep
        self._clock = clock
        self._luck = luck
        self.remedies = Remedies(spec, profiles)
        self._prompts = PromptChanges()
        self._has_listed = False  # for the sake of a window
        self.known = KnownModels(self._sender, spec.api, fact_sources(spec, profiles))
        self.on_error: Callable[[UpstreamError], None] = lambda error: None
        self._fim = FimClient(spec.name, spec.fim, self._stream)

    @property
    def name(self) -> str:
        """The name in the user's settings."""
        return self._spec.name

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return self._sender.rest_seconds

    @property
    def spec(self) -> UpstreamSpec:
        """What it was built from."""
        return self._spec

    def stream(
        self, chat: ChatRequest, model: str
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.stream."""
        if chat.fim is not None:
            return self._fim.stream(chat, model)
        return self._stream(chat, model)

    async def _stream(
        self, chat: ChatRequest, model: str, fim: Codec | None = None
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Send and stream one request; it is repeated only while nothing was shown."""
        if self._spec.api.dialect.loads_window:
            await self.known.ask(model)
        attempts = Attempts(
            self.name,
            chat,
            self.remedies.begin(self.known.facts(model), fim),
            self._keys.begin(chat.conversation),
            self._patience(
                patience_of(chat, self._spec.patience), has_others=chat.has_others
            ),
            self._prompts,
            may_be_empty=fim is not None,
        )
        del chat  # it may be large
        while True:
            try:
                async with self._answer(attempts) as batches:
                    async for batch in batches:
                        if attempts.begun:
                            yield batch
                        elif first := attempts.take(batch):
                            self._learn(attempts)
                            yield first
                return
            except UpstreamError as error:
                self.on_error(error)
                self.known.learn_from(error, model)
                error.upstream = self.name
                seconds = attempts.recover(error)
                if held := attempts.take_held():
                    yield held
                if seconds is None:
                    if (explained := attempts.explain(error)) is error:
                        raise
                    raise explained from error
                await self._pause(seconds)

    @asynccontextmanager
    async def _answer(
        self, attempts: Attempts
    ) -> AsyncIterator[AsyncGenerator[list[StreamEvent], None]]:
        """Send a request once; give the events of its answer."""
        sent, remedies = attempts.sent, attempts.remedies
        timeouts = self._spec.timeouts_for(remedies.facts)
        current_record().note_attempt(attempts.content)
        async with self._sender.open(
            remedies.api,
            sent.path,
            attempts.content,
            sent.headers,
            attempts.key,
            timeouts=timeouts,
        ) as response:
            encoding = response.headers.get("content-encoding", "")
            stage = with_inflate(encoding, attempts.reader())
            batches = self._batches(response, stage, timeouts)
            async with aclosing(batches):
                yield batches

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown.

        If nothing else knows it, the list of models may, which is read once for this.
        """
        window = await self.known.window(model)
        if not window and not self._has_listed:
            self._has_listed = True
            try:
                await self.models()
            except UpstreamError as error:
                _log.info("%s lists no windows: %s", self.name, error.log_text)
            window = self.known.facts(model).window
        if self._spec.api.dialect.loads_window:
            return self.remedies.sizes.limit(self.known.facts(model))
        return window

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            found = await fetch_models(self._sender, self._spec.api)
        except UpstreamError as error:
            error.upstream = self.name
            raise
        self.known.set_listed(found)
        return [model.id for model in found]

    async def _batches(
        self,
        response: httpx.Response,
        stage: Stage[bytes, StreamEvent],
        timeouts: Timeouts,
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of each network read that completes any.

        A lost connection is an error only if the answer was not complete by then.
        """
        lost: UpstreamUnreachable | None = None
        body, size = body_of(response), 0
        read = current_record().tap_reads(body.read)
        with Watch(timeouts, body.abort) as watch:
            try:
                with translate_errors(self._spec.api.base_url):
                    while data := await read():
                        if (size := size + len(data)) > MAX_ANSWER_BYTES:
                            raise _too_large()
                        batch, failure = feed_read(stage, data)
                        watch.note_bytes(has_event=bool(batch))
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

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves; not in an API in which the model cannot be asked."""
        api = self._spec.find_serving(path)
        needed = self._spec.find_api(self.known.facts(model).dialect)
        return api is not None and needed in (None, api)

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward; retries only before the response begins."""
        if (api := self._spec.find_serving(path)) is None:
            raise BadRequest(
                f"it has no API with /{path}, so this cannot be passed on to it.",
                upstream=self.name,
                code="not_served",
                hint="Choose a model of an upstream that has.",
                status=422,
            )
        key = self._keys.begin()
        seconds = 0.0 if path == "completions" else self._spec.patience
        # Who asks for vectors has a patience of his own.
        patience = self._patience(seconds, has_others=path == "embeddings")
        async with AsyncExitStack() as stack:
            while True:
                current_record().note_attempt(content)
                try:
                    sent = self._sender.open(api, path, content, headers, key)
                    response = await stack.enter_async_context(sent)
                    break
                except UpstreamError as error:
                    if _replaces(key, error):
                        continue
                    wait = patience.plan_wait(error)
                    if wait is None:
                        error.upstream = self.name
                        if hint := missing_path_hint(error, path):
                            raise error.with_hint(hint) from error
                        if (explained := patience.explain(error)) is error:
                            raise
                        raise explained from error
                    await self._sleep(wait)
            spec = self._spec
            reads = pass_on(response, spec.name, api.base_url, spec.timeouts)
            async with aclosing(reads):
                yield ForwardedResponse(describing_headers(response), reads)

    def _learn(self, attempts: Attempts) -> None:
        """Keep what an answer shows of its model, once it has begun."""
        if attempts.begun:
            self.known.learn(attempts.remedies.learned_facts())

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await self._sleep(seconds)

    def _patience(self, seconds: float, *, has_others: bool = False) -> Patience:
        return Patience(seconds, self._clock, self._luck, has_others=has_others)
