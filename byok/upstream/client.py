"""An upstream over HTTP: sends requests, streams events, lists models."""

import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from itertools import groupby
from operator import attrgetter
from typing import cast

import httpx

from byok.core.chat import ChatRequest
from byok.core.errors import (
    BadRequest,
    UpstreamError,
    UpstreamGarbled,
    UpstreamNotJson,
    UpstreamUnreachable,
)
from byok.core.events import Finish, StreamEvent, TextDelta, ToolCallDelta
from byok.core.record import current_record
from byok.core.stage import Stage
from byok.core.wire.inflate import with_inflate
from byok.dialects.chat_changes import PICTURES
from byok.upstream.base import (
    Destination,
    ForwardedResponse,
    Plan,
    Recovery,
    find_next_plan,
)
from byok.upstream.catalog import fetch_models
from byok.upstream.failures import missing_path_hint, translate_errors
from byok.upstream.http_body import describing_headers, drain, hang_up, pass_on
from byok.upstream.http_sender import NO_HEADERS, Sender, UpstreamKeys
from byok.upstream.model_facts import KnownModels, Profiles, fact_sources
from byok.upstream.recoveries import AnotherFimMode, AnotherKey, AnotherRemedy, Wait
from byok.upstream.remedies import Remedies
from byok.upstream.retry import Patience
from byok.upstream.spec import UpstreamSpec
from byok.upstream.timeouts import Timeouts, Watch
from byok.upstream.toolcalls.printed_calls import PrintedCallReader
from byok.upstream.transport import Transports, body_of

_log = logging.getLogger(__name__)
MAX_ANSWER_BYTES = 64 * 2**20  # of a streamed answer, with its event framing
_EMPTY_REQUEST = ChatRequest(())
_text_of, _arguments_of = attrgetter("text"), attrgetter("arguments")


class HttpUpstream:
    """Upstream that is reached over HTTP, in any dialect.

    `recoveries` begins with those that every upstream has; others may be appended.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        transports: Transports,
        keys: UpstreamKeys,
        *,
        profiles: Profiles | None = None,
        wait: Wait | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self._keys = keys
        self._sender = Sender(spec, transports, keys)
        self.remedies = Remedies(spec, profiles)
        self._has_listed = False  # `window` has fetched the list of models
        self.known = KnownModels(self._sender, spec.api, fact_sources(spec, profiles))
        self._key = AnotherKey(keys)
        self._wait = wait or Wait(spec.patience)
        loads_window = spec.api.dialect.loads_window
        self.recoveries: tuple[Recovery, ...] = (
            AnotherRemedy(self.remedies, self.known, loads_window=loads_window),
            self._key,
            self._wait,
            AnotherFimMode(spec.name, spec.fim, spec.next_edit),
        )

    @property
    def rest_seconds(self) -> float:
        """See Upstream.rest_seconds."""
        return max(0.0, self._sender.breaker.seconds_left())

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.send."""
        remedies, written = plan.remedies, plan.written
        if remedies is None or written is None:
            raise ValueError("the plan is not prepared")
        stage, head = remedies.codec.reader(written.head), written.head
        schemas = {tool.name: tool.parameters for tool in plan.outgoing.tools}
        if schemas and remedies.facts.printed_calls is not False:
            stage = PrintedCallReader(stage, schemas, head.tool_names)
        timeouts = self.spec.timeouts_for(remedies.facts)
        current_record().note_attempt(written.content)
        try:
            response = await self._sender.send(
                remedies.api,
                written.head.path,
                written.content,
                written.head.headers,
                plan.key,
                timeouts=timeouts,
            )
            del plan, remedies, written  # the answer may take minutes
            try:
                stage = with_inflate(body_of(response).coding, stage)
                async with aclosing(self._batches(response, stage, timeouts)) as reads:
                    async for batch in reads:
                        yield batch
            finally:
                await hang_up(response)
        except UpstreamError as error:
            error.upstream = self.name
            raise

    def sees_pictures(self, plan: Plan) -> bool:
        """Tell whether the model of a plan accepts pictures, as far as is known."""
        facts = self.known.facts(plan.model)
        remedies = plan.remedies or self.remedies.begin(facts, plan.codec)
        is_refused = any(remedy.change == PICTURES for remedy in remedies.applied)
        return facts.images is not False and not is_refused

    async def window(self, model: str) -> int:
        """Return the context window of a model in tokens, 0 if it is unknown.

        If no other source knows it, the list of models may; it is fetched once for
        this.
        """
        window = await self.known.window(model)
        if not window and not self._has_listed:
            self._has_listed = True
            try:
                await self.models()
            except UpstreamError as error:
                _log.info("%s lists no windows: %s", self.name, error.log_text)
            window = self.known.facts(model).window
        if self.spec.api.dialect.loads_window:
            return self.remedies.sizes.limit(self.known.facts(model))
        return window

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            models = await fetch_models(self._sender, self.spec.api)
        except UpstreamError as error:
            error.upstream = self.name
            raise
        self.known.set_listed(models)
        return [model.id for model in models]

    async def _batches(
        self,
        response: httpx.Response,
        stage: Stage[bytes, StreamEvent],
        timeouts: Timeouts,
    ) -> AsyncGenerator[list[StreamEvent], None]:
        """Yield the events of each network read that completes at least one.

        A lost connection is an error only if the answer was not complete before.
        """
        lost: UpstreamUnreachable | None = None
        body, size = body_of(response), 0
        read = current_record().tap_reads(body.read)
        with Watch(timeouts, body.abort) as watch:
            try:
                with translate_errors(self.spec.api.base_url):
                    while data := await read():
                        if (size := size + len(data)) > MAX_ANSWER_BYTES:
                            raise UpstreamGarbled(
                                "its answer is larger than "
                                f"{MAX_ANSWER_BYTES // 2**20} MiB.",
                                code="upstream_event_too_large",
                            )
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
            raise incomplete_answer_error(lost, failure)

    def serves(self, path: str, model: str) -> bool:
        """See Upstream.serves; an API that cannot serve the model does not count."""
        api = self.spec.find_serving(path)
        required_api = self.spec.find_api(self.known.facts(model).dialect)
        return api is not None and required_api in (None, api)

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward; a failed request is retried until a response begins."""
        if (api := self.spec.find_serving(path)) is None:
            raise BadRequest(
                f"it has no API with /{path}, so this cannot be passed on to it.",
                upstream=self.name,
                code="not_served",
                hint="Choose a model of an upstream that has.",
                status=422,
            )
        # The caller retries requests for vectors itself; completions are not retried.
        seconds = 0.0 if path == "completions" else self.spec.patience
        patience = Patience(seconds, has_others=path == "embeddings")
        key = self._keys.begin()
        plan = Plan(Destination(self, ""), _EMPTY_REQUEST, patience=patience, key=key)
        async with AsyncExitStack() as stack:
            while True:
                current_record().note_attempt(content)
                try:
                    sent = self._sender.open(api, path, content, headers, key)
                    response = await stack.enter_async_context(sent)
                    break
                except UpstreamError as error:
                    error.upstream = self.name
                    recoveries = (self._key, self._wait)
                    outcome = await find_next_plan(recoveries, plan, error)
                    if isinstance(outcome, Plan):
                        plan = await self._wait.prepare(outcome)
                        continue
                    hint = missing_path_hint(error, path)
                    raise error.with_hint(hint) if hint else outcome from None
            reads = pass_on(response, self.name, api.base_url, self.spec.timeouts)
            async with aclosing(reads):
                yield ForwardedResponse(describing_headers(response), reads)


def feed_read(
    stage: Stage[bytes, StreamEvent], data: bytes
) -> tuple[list[StreamEvent], UpstreamError | None]:
    """Feed one read (b"" at the end) to a reader; return its events and the error.

    The events came before the error. Adjacent text deltas are joined to one, and so are
    adjacent arguments of a call.
    """
    batch: list[StreamEvent] = []
    failure: UpstreamError | None = None
    try:
        batch += stage.feed(data) if data else stage.flush()
    except UpstreamError as error:  # the events before it are in the batch
        failure = error
    return (batch if len(batch) < 2 else list(_join_deltas(batch))), failure


def _join_deltas(batch: list[StreamEvent]) -> Iterator[StreamEvent]:
    for kind, events in groupby(batch, type):
        if kind is TextDelta:
            yield TextDelta("".join(map(_text_of, events)))
        elif kind is ToolCallDelta:
            deltas = cast("Iterator[ToolCallDelta]", events)
            for index, run in groupby(deltas, _continued_index):
                if index is None:
                    yield from run
                else:
                    yield ToolCallDelta(
                        index, arguments="".join(map(_arguments_of, run))
                    )
        else:
            yield from events


def _continued_index(delta: ToolCallDelta) -> int | None:
    """Return the index of a delta that only continues a call's arguments, else None."""
    has_other_fields = delta.id or delta.name or delta.provider_data or delta.is_printed
    return None if has_other_fields else delta.index


def incomplete_answer_error(
    lost: UpstreamError | None, failure: UpstreamError
) -> UpstreamError:
    """Return the error of an incomplete answer; `lost` is that of the connection."""
    if lost:
        return lost
    if isinstance(failure, UpstreamNotJson):
        return UpstreamGarbled(
            "its answer broke off before the end.", code="upstream_cut", retryable=True
        )
    return failure
