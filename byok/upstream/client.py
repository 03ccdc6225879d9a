"""An upstream over HTTP: sends requests, streams events, lists models."""

import asyncio
import logging
import random
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx
from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import ChatRequest, ToolDefinition
from byok.core.errors import (
    BadRequest,
    ByokError,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamUnreachable,
)
from byok.core.events import Finish, Notice, StreamEvent
from byok.core.record import current_record
from byok.core.stage import Stage
from byok.core.wire.inflate import with_inflate
from byok.dialects.base import Codec, UpstreamRequest
from byok.dialects.chat_changes import PICTURES
from byok.dialects.fim_codecs import NextEditCodec, modes_for
from byok.dialects.fim_templates import FimMode
from byok.dialects.next_edit_formats import format_of, named_format
from byok.upstream.base import (
    NO_HEADERS,
    Destination,
    ForwardedResponse,
    Plan,
    Recovery,
    plan_again,
)
from byok.upstream.catalog import fetch_models
from byok.upstream.failures import missing_path_hint, translate_errors
from byok.upstream.http_call import (
    Timeouts,
    UpstreamKeys,
    Watch,
    at_end,
    describing_headers,
    drain,
    feed_read,
    hang_up,
    pass_on,
)
from byok.upstream.http_sender import Sender
from byok.upstream.model_facts import KnownModels, Profiles, fact_sources
from byok.upstream.reasons import another_key_notice
from byok.upstream.remedies import Remedies, RequestRemedies
from byok.upstream.retry import Patience, patience_of, rest_of_key
from byok.upstream.spec import UpstreamSpec
from byok.upstream.toolcalls.printed_calls import PrintedCallReader
from byok.upstream.transport import Transports, body_of

# What is tried at one upstream over HTTP: a remedy, another key, to wait.


class AnotherRemedy(Recovery, Struct, eq=False):
    """Writes a refused request otherwise, and remembers what helped.

    `loads_window`: a request says with which window the server loads the model, so it
    is asked first what it knows of it.
    """

    remedies: Remedies
    known: KnownModels
    loads_window: bool

    async def prepare(self, plan: Plan) -> Plan:
        """Encode the request with the remedies that the model is known to need."""
        if plan.written is not None:
            return plan
        if (remedies := plan.remedies) is None:
            if self.loads_window:
                await self.known.ask(plan.model)
            remedies = self.remedies.begin(self.known.facts(plan.model), plan.codec)
        elif plan.shortenings:  # the refusal may have told the window
            remedies = replace(remedies, facts=self.known.facts(plan.model))
        return plan.having(remedies=remedies, written=remedies.write(plan.outgoing))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Learn from a refusal, and add the remedy for it, if there is another one."""
        if not isinstance(failure, UpstreamError):
            return failure
        self.known.learn_from(failure, plan.model)
        if plan.remedies is None or plan.written is None:
            return failure
        remedies = plan.remedies.find(failure, plan.outgoing, plan.written.head)
        if remedies is None:
            return failure
        return plan.having(remedies=remedies, written=None)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Return what had to be left out of the request."""
        return map(Notice, plan.written.head.notices if plan.written else ())

    def note_begin(self, plan: Plan) -> None:
        """Use these remedies from now on."""
        if plan.remedies and (plan.remedies.made or plan.remedies.before):
            plan.remedies.remember()
            self.known.learn(plan.remedies.learned_facts())


class AnotherKey(Recovery):
    """Uses another one of the user's keys where one is refused or at its limit."""

    def __init__(self, keys: UpstreamKeys) -> None:
        self._keys = keys

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the key of the conversation."""
        if plan.key is not None:
            return plan
        return plan.having(key=self._keys.begin(plan.request.conversation))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Let the key rest if the failure is its own, and take the next one."""
        if plan.key is None or not isinstance(failure, UpstreamError):
            return failure
        rest = rest_of_key(failure)
        if rest is None or not plan.key.replace(rest):
            return failure
        return plan.having(refused_key=failure)

    def notices(self, plan: Plan) -> Iterable[Notice]:
        """Tell that another key is used."""
        if plan.refused_key is None:
            return ()
        return (another_key_notice(plan.name, plan.refused_key),)


class Wait(Recovery, Struct, eq=False):
    """Sends the same request later, as long as somebody waits for its answer.

    People wait `seconds`; `clock` gives seconds, `luck` random numbers from 0 to 1.
    """

    seconds: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    luck: Callable[[], float] = random.random

    async def prepare(self, plan: Plan) -> Plan:
        """Wait as long as it was planned."""
        if plan.patience is None:
            seconds = patience_of(plan.request, self.seconds)
            return plan.having(patience=Patience(seconds, plan.has_others))
        if not plan.patience.pause:
            return plan
        await self.sleep(plan.patience.pause)
        return plan.having(patience=replace(plan.patience, pause=0.0))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Plan a wait, if the failure passes and there is patience left for it."""
        if plan.patience is None or not isinstance(failure, UpstreamError):
            return failure
        now = self.clock()
        planned = plan.patience.plan_wait(failure, now, self.luck())
        if planned is None:
            return plan.patience.explain(failure, now)
        planned, notice = planned.write_notice(plan.name, failure, now)
        return plan.having(patience=planned, urgent=(notice,) if notice else ())


_log = logging.getLogger(__name__)
MAX_ANSWER_BYTES = 64 * 2**20  # of a streamed answer, events and all
_NOTHING = ChatRequest(())


def _too_large() -> UpstreamGarbled:
    return UpstreamGarbled(
        f"its answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB.",
        code="upstream_event_too_large",
    )


class HttpUpstream:
    """Upstream that is reached over HTTP, in any dialect.

    `recoveries` begins with what can be tried at any upstream; more may be appended.
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
        self.spec = spec
        self.name = spec.name
        self._keys = keys
        self._sender = Sender(spec, transports, keys)
        self.remedies = Remedies(spec, profiles)
        self._has_listed = False  # for the sake of a window
        self.known = KnownModels(self._sender, spec.api, fact_sources(spec, profiles))
        self._key = AnotherKey(keys)
        self._wait = Wait(spec.patience, sleep=sleep, clock=clock, luck=luck)
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
        return self._sender.rest_seconds

    async def send(self, plan: Plan) -> AsyncGenerator[list[StreamEvent], None]:
        """See Upstream.send."""
        remedies, written = plan.remedies, plan.written
        if remedies is None or written is None:
            raise ValueError("the plan is not prepared")
        stage = _make_reader(remedies, written.head, plan.outgoing.tools)
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
                encoding = response.headers.get("content-encoding", "")
                stage = with_inflate(encoding, stage)
                async with aclosing(self._batches(response, stage, timeouts)) as reads:
                    async for batch in reads:
                        yield batch
            finally:
                await hang_up(response)
        except UpstreamError as error:
            error.upstream = self.name
            raise

    def sees_pictures(self, plan: Plan) -> bool:
        """Tell whether the model of a plan takes pictures, as far as is known."""
        facts = self.known.facts(plan.model)
        remedies = plan.remedies or self.remedies.begin(facts, plan.codec)
        is_refused = any(remedy.change == PICTURES for remedy in remedies.made)
        return facts.images is not False and not is_refused

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
        if self.spec.api.dialect.loads_window:
            return self.remedies.sizes.limit(self.known.facts(model))
        return window

    async def models(self) -> list[str]:
        """See Upstream.models."""
        try:
            found = await fetch_models(self._sender, self.spec.api)
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
                with translate_errors(self.spec.api.base_url):
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
        api = self.spec.find_serving(path)
        needed = self.spec.find_api(self.known.facts(model).dialect)
        return api is not None and needed in (None, api)

    @asynccontextmanager
    async def forward(
        self, path: str, content: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncIterator[ForwardedResponse]:
        """See Upstream.forward; retries only before the response begins."""
        if (api := self.spec.find_serving(path)) is None:
            raise BadRequest(
                f"it has no API with /{path}, so this cannot be passed on to it.",
                upstream=self.name,
                code="not_served",
                hint="Choose a model of an upstream that has.",
                status=422,
            )
        # Who asks for vectors has a patience of his own.
        seconds = 0.0 if path == "completions" else self.spec.patience
        patience = Patience(seconds, has_others=path == "embeddings")
        key = self._keys.begin()
        plan = Plan(Destination(self, ""), _NOTHING, patience=patience, key=key)
        async with AsyncExitStack() as stack:
            while True:
                current_record().note_attempt(content)
                try:
                    sent = self._sender.open(api, path, content, headers, key)
                    response = await stack.enter_async_context(sent)
                    break
                except UpstreamError as error:
                    error.upstream = self.name
                    outcome = await plan_again((self._key, self._wait), plan, error)
                    if isinstance(outcome, Plan):
                        plan = await self._wait.prepare(outcome)
                        continue
                    hint = missing_path_hint(error, path)
                    raise error.with_hint(hint) if hint else outcome from None
            reads = pass_on(response, self.name, api.base_url, self.spec.timeouts)
            async with aclosing(reads):
                yield ForwardedResponse(describing_headers(response), reads)


def _make_reader(
    remedies: RequestRemedies, head: UpstreamRequest, tools: Iterable[ToolDefinition]
) -> Stage[bytes, StreamEvent]:
    """Return a reader of an answer, also for tool calls in its text."""
    first = remedies.codec.reader(head)
    schemas = {tool.name: tool.parameters for tool in tools}
    if remedies.facts.printed_calls is False or not schemas:
        return first
    return PrintedCallReader(first, schemas, head.tool_names)


# FIM: ask for code between a prefix and a suffix, in the best mode of a model.


_MAX_MODELS = 1000
# Another mode helps only where the upstream does not have this one.
_NOT_SERVED = frozenset({400, 404, 405, 422, 501})
_NOT_KNOWN = frozenset(
    {
        RefusalKind.UNKNOWN,
        RefusalKind.NOT_FOUND,
        RefusalKind.BAD_PARAMETER,
        RefusalKind.WRONG_API,
    }
)


class AnotherFimMode(Recovery, Struct, eq=False):
    """Tries FIM modes in order, and keeps to the one that a model accepted.

    `codecs` are the upstream's, by mode, and `next_edit` those for next edits, which a
    model is asked for in its own format first; None stands for a chat.
    """

    upstream: str
    codecs: Mapping[FimMode, Codec | None]
    next_edit: Mapping[FimMode, Codec]
    # by model, and whether a gap is filled: the mode it took last
    _used: BoundedMap[tuple[str, bool], FimMode] = field(
        default_factory=lambda: BoundedMap(_MAX_MODELS)
    )
    _logged: set[FimMode] = field(default_factory=set)

    async def prepare(self, plan: Plan) -> Plan:
        """Choose the mode of a request that fills a gap, or changes a file."""
        request = plan.request
        if plan.mode is not None or (request.fim or request.next_edit) is None:
            return plan
        codecs, known = self._codecs_for(plan), self._used.get(_question_of(plan))
        return self._use(plan, known if known in codecs else next(iter(codecs)))

    async def next(self, plan: Plan, failure: ByokError) -> Plan | ByokError:
        """Use the mode after one that is not served here."""
        if plan.mode is None or not _refuses_mode(failure):
            return failure
        self._used.pop(_question_of(plan))
        modes = [*self._codecs_for(plan)]
        following = modes[modes.index(plan.mode) + 1 :]
        if not following:
            return failure
        if plan.mode not in self._logged:
            self._logged.add(plan.mode)
            _log.info("%s does not serve FIM by %s", self.upstream, plan.mode)
        return self._use(plan, following[0])

    def note_begin(self, plan: Plan) -> None:
        """Begin with this mode from now on."""
        if plan.mode is not None:
            self._used[_question_of(plan)] = plan.mode
        if plan.codec is not None:
            current_record().prompt = ""  # only a chat is told one

    def _use(self, plan: Plan, mode: FimMode) -> Plan:
        """Return the plan in a mode; what was found out about another one is void."""
        return plan.having(
            mode=mode,
            codec=self._codecs_for(plan)[mode],
            patience=None,
            remedies=None,
            written=None,
        )

    def _codecs_for(self, plan: Plan) -> dict[FimMode, Codec | None]:
        """Return the codecs for a request, in the order in which they are tried."""
        if plan.request.next_edit is not None:
            name = format_of(plan.model, self.next_edit)
            mode = named_format(name).mode if name else FimMode.CHAT
            codec = NextEditCodec(name, self.next_edit[mode]) if name else None
            return {mode: codec, FimMode.CHAT: None}
        try:
            modes = modes_for(self.codecs, plan.model)
        except UpstreamError as error:
            error.upstream = self.upstream
            raise
        return {mode: self.codecs[mode] for mode in modes}


def _question_of(plan: Plan) -> tuple[str, bool]:
    return plan.model, plan.request.next_edit is None


def _refuses_mode(failure: ByokError) -> bool:
    """Tell whether the mode is refused, and not this request.

    A refusal inside a stream, which has no status, never is one of the mode.
    """
    return (
        isinstance(failure, UpstreamRefused)
        and failure.upstream_status in _NOT_SERVED
        and failure.kind in _NOT_KNOWN
    )
