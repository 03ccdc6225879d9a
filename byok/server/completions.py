"""Inline completions: within a time limit, only for the newest request, no errors."""

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
from byok.protocols.augment.completion import CompletionObject, ShownCompletions
from byok.protocols.augment.endpoints import Generate
from byok.protocols.augment.reply_job import Decode, Defaults, ReplyFacts
from byok.server.admission import Gate, end_now
from byok.server.code_endpoints import window_of
from byok.server.generate import Generator
from byok.server.http.reply import HttpExchange, explain_failure, json_response
from byok.server.model_answer import LateAnswer, ModelAnswer
from byok.settings.sections import CompletionSettings

_log = logging.getLogger(__name__)


class _Pending(Struct, frozen=True):
    """A completion to be made; only the newest one of an `asker` counts."""

    model_answer: ModelAnswer[CompletionObject]
    asker: Hashable
    key: Hashable  # of the text in the cache of shown completions
    blobs: BlobNames


class _Running(Struct):
    scope: asyncio.Timeout
    outdated: bool = False


class Completer(Struct, frozen=True):
    """Decodes and answers the requests of the Completing rows.

    `failures` holds the code of the failure that was logged last, by upstream.
    """

    generator: Generator
    gate: Gate
    settings: CompletionSettings
    shown: ShownCompletions = field(default_factory=ShownCompletions)
    under_way: dict[Hashable, _Running] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    async def prepare(
        self,
        row: Generate,
        decode: Decode[CompletionObject],
        body: Json,
        exchange: HttpExchange,
        run: Runner,
    ) -> LateAnswer:
        """Choose the model and read the body; a cached text needs no model."""
        request_id, generator = exchange.request_id, self.generator
        request = await generator.choose_model(row, body, exchange, run)
        request = replace(request, defaults=self._shorten(request.defaults))
        job = await generator.decode(request, decode)
        blobs = await run(partial(blob_names, body))
        reply, destination = job.reply(ReplyFacts(request_id)), request.destination
        cursor = reply.cursor
        key = (destination.model_id, row.path, cursor.path)
        answer_with = partial(self._answer_with, reply, blobs, request_id)
        if not job.chat.messages:
            return partial(answer_with, "")
        if remaining := self.shown.remaining(key, cursor):
            return partial(answer_with, remaining)
        session = window_of(exchange.request.headers)
        asker = (session, row.path, cursor.path) if session else request_id
        verdict = await generator.ask_features(request, job.chat)
        answer = ModelAnswer(
            destination, job.chat, reply, exchange.record, generator.tools, verdict
        )
        return partial(self._answer, _Pending(answer, asker, key, blobs))

    async def _answer_with(
        self, reply: CompletionObject, blobs: BlobNames, request_id: str, text: str
    ) -> StreamResponse:
        """Answer with a text that needs no model, and with the unknown blobs."""
        reply.facts = await self.generator.grounding.facts(blobs, request_id)
        return json_response(reply.write(text))

    async def _answer(self, pending: _Pending) -> StreamResponse:
        """Ask the model, and look up meanwhile which blobs are unknown."""
        reply, record = pending.model_answer.reply, pending.model_answer.record
        async with asyncio.TaskGroup() as group:
            find = self.generator.grounding.facts
            facts = group.create_task(find(pending.blobs, record.request_id))
            await self._complete(pending)
        self.shown.store(pending.key, reply.cursor, reply.text)
        reply.facts = facts.result()
        return json_response(reply.write(reply.text))

    async def _complete(self, pending: _Pending) -> None:
        """Ask the model; a failure gives a completion without text."""
        answer = pending.model_answer
        name = answer.destination.upstream.name
        try:
            await self._ask_within_limits(pending)
            self.failures.pop(name, None)
        except Exception as error:
            failure = explain_failure(error, answer.record.request_id)
            # Logged once, because the next key stroke would fail in the same way.
            if self.failures.get(name) != failure.code:
                self.failures[name] = failure.code
                _log.warning("no completions from %s: %s", name, failure.log_text)
            answer.record.note_error(failure)
            answer.reply.fail_whole(failure)

    async def _ask_within_limits(self, pending: _Pending) -> None:
        """Ask until there is enough text, the time is up, or a newer request came."""
        answer, gate = pending.model_answer, self.gate
        async with (
            gate.enter(wait=False),
            gate.raise_on_stop(),
            self._supersede_older(pending.asker) as running,
        ):
            try:
                async with running.scope, answer.events() as batches:
                    async for batch in batches:
                        answer.lines(batch)
                        if answer.ended or answer.reply.enough:
                            break
            except TimeoutError:
                if not running.scope.expired():
                    raise
                if not running.outdated:
                    answer.reply.in_time()
                return
        if not answer.ended:
            answer.end()

    @asynccontextmanager
    async def _supersede_older(self, asker: Hashable) -> AsyncIterator[_Running]:
        """Cancel the older request of this editor and file: nobody waits for it."""
        if older := self.under_way.get(asker):
            older.outdated = True
            end_now(older.scope)
        seconds = self.settings.timeout_ms / 1000
        running = self.under_way[asker] = _Running(asyncio.timeout(seconds))
        try:
            yield running
        finally:
            if self.under_way.get(asker) is running:
                del self.under_way[asker]

    def _shorten(self, defaults: Defaults) -> Defaults:
        """Return the defaults with the shorter maximum length of a completion."""
        sampling = defaults.sampling
        limit = self.settings.max_tokens
        if sampling.max_tokens is not None:
            limit = min(limit, sampling.max_tokens)
        return replace(defaults, sampling=replace(sampling, max_tokens=limit))
