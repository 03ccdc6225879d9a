"""Inline completions: within a time limit, only the newest request, never an error."""

import asyncio
import logging
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from functools import partial

from aiohttp.web_response import StreamResponse
from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.chat import Json
from byok.core.code_query import BlobNames
from byok.core.threads import Runner
from byok.protocols.augment.blobs import blob_names
from byok.protocols.augment.completion import CompletionObject, Shown
from byok.protocols.augment.endpoints import Generate
from byok.protocols.augment.reply_job import Decode, Defaults, ReplyFacts
from byok.server.code_endpoints import window_of
from byok.server.generate import Generator
from byok.server.http.gate import Gate, end_now
from byok.server.http.reply import HttpExchange, explain_failure, json_response
from byok.server.model_answer import LateAnswer, ModelAnswer
from byok.settings.sections import CompletionSettings

_log = logging.getLogger(__name__)


class _Pending(Struct, frozen=True):
    """A completion to be made; of those for the same `asker` only the newest counts."""

    model_answer: ModelAnswer[CompletionObject]
    asker: Hashable
    key: Hashable  # of the prediction
    blobs: BlobNames


class _UnderWay(Struct):
    scope: asyncio.Timeout
    outdated: bool = False


class Completer(Struct, frozen=True):
    """Understands and makes the completions of the Completing rows.

    `failures` are what was logged last, by upstream.
    """

    generator: Generator
    gate: Gate
    settings: CompletionSettings
    shown: Shown = field(default_factory=Shown)
    under_way: dict[Hashable, _UnderWay] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    async def understand(
        self,
        row: Generate,
        decode: Decode[CompletionObject],
        body: Json,
        exchange: HttpExchange,
        run: Runner,
    ) -> LateAnswer:
        """Choose the model and read the body; some texts are known without asking."""
        request_id, generator = exchange.request_id, self.generator
        request = await generator.begin(row, body, exchange, run)
        request = replace(request, defaults=self._shorten(request.defaults))
        job = await generator.read(request, decode)
        blobs = await run(partial(blob_names, body))
        reply, asked = job.reply(ReplyFacts(request_id)), request.destination
        cursor = reply.cursor
        key = (asked.model_id, row.path, cursor.path)
        ready = partial(self._answer_with, reply, blobs, request_id)
        if not job.chat.messages:
            return partial(ready, "")
        if rest := self.shown.rest(key, cursor):
            return partial(ready, rest)
        session = window_of(exchange.request.headers)
        asker = (session, row.path, cursor.path) if session else request_id
        verdict = await generator.judge(request, job.chat)
        answer = ModelAnswer(
            asked, job.chat, reply, exchange.record, generator.tools, verdict
        )
        return partial(self._answer, _Pending(answer, asker, key, blobs))

    async def _answer_with(
        self, reply: CompletionObject, blobs: BlobNames, request_id: str, text: str
    ) -> StreamResponse:
        """Answer with a text, and with what of the blobs is unknown."""
        reply.facts = await self.generator.grounding.facts(blobs, request_id)
        return json_response(reply.write(text))

    async def _answer(self, pending: _Pending) -> StreamResponse:
        """Ask the model, and find out meanwhile what of the blobs is unknown."""
        reply, record = pending.model_answer.reply, pending.model_answer.record
        async with asyncio.TaskGroup() as group:
            find = self.generator.grounding.facts
            known = group.create_task(find(pending.blobs, record.request_id))
            await self._complete(pending)
        self.shown.keep(pending.key, reply.cursor, reply.text)
        reply.facts = known.result()
        return json_response(reply.write(reply.text))

    async def _complete(self, pending: _Pending) -> None:
        """Ask; a failure gives a completion without text."""
        answer = pending.model_answer
        name = answer.destination.upstream.name
        try:
            await self._in_time(pending)
            self.failures.pop(name, None)
        except Exception as error:
            failure = explain_failure(error, answer.record.request_id)
            # Once: the next key stroke would meet it again.
            if self.failures.get(name) != failure.code:
                self.failures[name] = failure.code
                _log.warning("no completions from %s: %s", name, failure.log_text)
            answer.record.note_error(failure)
            answer.reply.fail_whole(failure)

    async def _in_time(self, pending: _Pending) -> None:
        """Ask; stop at enough text, at the time limit or for a newer request."""
        answer, gate = pending.model_answer, self.gate
        async with (
            gate.enter(wait=False),
            gate.raise_on_stop(),
            self._newest(pending.asker) as mine,
        ):
            try:
                async with mine.scope, answer.events() as batches:
                    async for batch in batches:
                        answer.lines(batch)
                        if answer.ended or answer.reply.enough:
                            break
            except TimeoutError:
                if not mine.scope.expired():
                    raise
                if not mine.outdated:
                    answer.reply.in_time()
                return
        if not answer.ended:
            answer.end()

    @asynccontextmanager
    async def _newest(self, asker: Hashable) -> AsyncIterator[_UnderWay]:
        """Cancel the older request of the same editor and file: nobody waits for it."""
        if older := self.under_way.get(asker):
            older.outdated = True
            end_now(older.scope)
        seconds = self.settings.timeout_ms / 1000
        mine = self.under_way[asker] = _UnderWay(asyncio.timeout(seconds))
        try:
            yield mine
        finally:
            if self.under_way.get(asker) is mine:
                del self.under_way[asker]

    def _shorten(self, defaults: Defaults) -> Defaults:
        """Return the user's defaults, with the shorter answer of a completion."""
        sampling = defaults.sampling
        most = self.settings.max_tokens
        if sampling.max_tokens is not None:
            most = min(most, sampling.max_tokens)
        return replace(defaults, sampling=replace(sampling, max_tokens=most))
