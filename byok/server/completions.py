"""Inline completions: within a time limit, only the newest request, never an error."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial

from aiohttp.web import StreamResponse
from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import Json
from byok.core.code_query import BlobNames
from byok.core.errors import ByokError
from byok.core.record import RequestRecord
from byok.core.threads import Runner
from byok.features.base import Asking, Verdict
from byok.protocols.augment.blobs import blob_names
from byok.protocols.augment.completion import CompletionObject, Shown
from byok.protocols.augment.endpoints import Generate
from byok.protocols.augment.reply_job import Decode, DecodeState, Defaults, ReplyFacts
from byok.search.retrieval.code_context import CodeContext
from byok.server.generate import Grounding, ModelChooser
from byok.server.http.gate import Gate
from byok.server.http.reply import HttpExchange, explain_failure, json_response
from byok.server.model_answer import Answerable, AnswerTools, ModelAnswer
from byok.settings.sections import CompletionSettings
from byok.upstream.base import Destination

_log = logging.getLogger(__name__)
_SESSION = "X-Request-Session-Id"


class PendingCompletion(Struct, frozen=True):
    """A completion to be made; of those for the same `asker` only the newest counts."""

    completer: "Completer"
    record: RequestRecord
    model_answer: ModelAnswer
    reply: CompletionObject
    upstream: str
    asker: Hashable
    key: Hashable  # of the prediction
    blobs: BlobNames

    async def answer(self) -> StreamResponse:
        """Ask the model, and find out meanwhile what of the blobs is unknown."""
        return await self.completer.complete(self)


class ReadyCompletion(Struct, frozen=True):
    """A completion whose text is known already."""

    grounding: Grounding
    reply: CompletionObject
    text: str
    blobs: BlobNames
    request_id: str

    async def answer(self) -> StreamResponse:
        """Answer with the text, and with what of the blobs is unknown."""
        self.reply.facts = await self.grounding.facts(self.blobs, self.request_id)
        return json_response(self.reply.write(self.text))


class _UnderWay(Struct):
    scope: asyncio.Timeout
    outdated: bool = False


class Completer:
    """Understands and makes the completions of the Completing rows."""

    def __init__(
        self,
        models: ModelChooser,
        defaults: Callable[[str, Destination], Defaults],
        context: CodeContext,
        grounding: Grounding,
        tools: AnswerTools,
        gate: Gate,
        settings: CompletionSettings,
        admit: Callable[[Asking], Awaitable[Verdict]],
    ) -> None:
        self._models = models
        self._defaults = defaults
        self._context = context
        self._grounding = grounding
        self._tools = tools
        self._gate = gate
        self._settings = settings
        self._admit = admit
        self._shown = Shown()
        self._under_way: dict[Hashable, _UnderWay] = {}
        self._failures: dict[str, str] = {}  # upstream -> what was logged of it last

    async def understand(
        self,
        row: Generate,
        decode: Decode[CompletionObject],
        body: Json,
        exchange: HttpExchange,
        run: Runner,
    ) -> Answerable:
        """Choose the model and read the body; some texts are known without asking."""
        request_id = exchange.request_id
        destination = await self._models.choose(row.purpose, body)
        upstream = destination.upstream.name
        defaults = self._completion_defaults(row, destination)
        job = await run(partial(decode, body, defaults, DecodeState()))
        blobs = await run(partial(blob_names, body))
        reply = job.reply(ReplyFacts(request_id))
        cursor = reply.cursor
        key = (upstream, destination.model, row.path, cursor.path)
        # What is typed into a file of keys would leave the machine unasked.
        secret = job.chat.fim is not None and self._context.is_secret(cursor.path)
        if secret or not job.chat.messages:
            return ReadyCompletion(self._grounding, reply, "", blobs, request_id)
        if rest := self._shown.rest(key, cursor):
            return ReadyCompletion(self._grounding, reply, rest, blobs, request_id)
        exchange.record.prompt = f"{job.chat.prompt}@{defaults.prompts.version}"
        session = exchange.request.headers.get(_SESSION, "")
        asker = (session, row.path, cursor.path) if session else request_id
        record, model = exchange.record, destination.model
        verdict = await self._admit(Asking(record, upstream, model, job.chat))
        answer = ModelAnswer(
            destination,
            job.chat,
            reply,
            record,
            self._tools,
            refusal=verdict.refusal,
        )
        return PendingCompletion(
            self, record, answer, reply, upstream, asker, key, blobs
        )

    async def complete(self, pending: PendingCompletion) -> StreamResponse:
        """Make a completion."""
        reply = pending.reply
        async with asyncio.TaskGroup() as group:
            facts = self._grounding.facts(pending.blobs, pending.record.request_id)
            known = group.create_task(facts)
            await self._complete(pending)
        self._shown.keep(pending.key, reply.cursor, reply.text)
        reply.facts = known.result()
        return json_response(reply.write(reply.text))

    async def _complete(self, pending: PendingCompletion) -> None:
        """Ask; a failure gives a completion without text."""
        name = pending.upstream
        try:
            await self._in_time(pending)
            self._failures.pop(name, None)
        except ByokError as error:
            # Once: the next key stroke would meet it again.
            if self._failures.get(name) != error.code:
                self._failures[name] = error.code
                _log.warning("no completions from %s: %s", name, error.log_text)
            pending.record.note_error(error)
            pending.reply.fail_whole(error)
        except Exception as error:
            failure = explain_failure(error, pending.record.request_id)
            pending.reply.fail_whole(failure)

    async def _in_time(self, pending: PendingCompletion) -> None:
        """Ask; stop at enough text, at the time limit or for a newer request."""
        answer, reply, gate = pending.model_answer, pending.reply, self._gate
        async with (
            gate.enter(wait=False),
            gate.raise_on_stop(),
            self._newest(pending.asker) as mine,
        ):
            try:
                async with mine.scope, answer.events() as batches:
                    async for batch in batches:
                        answer.lines(batch)
                        if answer.ended or reply.enough:
                            break
            except TimeoutError:
                if not mine.scope.expired():
                    raise
                if not mine.outdated:
                    reply.in_time()
                return
        if not answer.ended:
            answer.end()

    @asynccontextmanager
    async def _newest(self, asker: Hashable) -> AsyncIterator[_UnderWay]:
        """Cancel the older request of the same editor and file: nobody waits for it."""
        now = asyncio.get_running_loop().time()
        older = self._under_way.get(asker)
        if older is not None and not older.scope.expired():
            older.outdated = True
            older.scope.reschedule(now)
        seconds = self._settings.timeout_ms / 1000
        mine = self._under_way[asker] = _UnderWay(asyncio.timeout(seconds))
        try:
            yield mine
        finally:
            if self._under_way.get(asker) is mine:
                del self._under_way[asker]

    def _completion_defaults(self, row: Generate, destination: Destination) -> Defaults:
        """Return the user's defaults, with the shorter answer of a completion."""
        defaults = self._defaults(row.path, destination)
        sampling = defaults.sampling
        most = self._settings.max_tokens
        if sampling.max_tokens is not None:
            most = min(most, sampling.max_tokens)
        return replace(defaults, sampling=replace(sampling, max_tokens=most))
