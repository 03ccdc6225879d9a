"""Inline completions: in time or without items, the newest one only, and no error."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from aiohttp.web import StreamResponse

from byok.augment.blobs import blob_names
from byok.augment.completion.reply import CompletionObject
from byok.augment.completion.shown import Shown
from byok.augment.endpoints import Generate
from byok.augment.reply_job import Decode, Defaults, ReplyFacts, ignore_kind
from byok.chat import Json
from byok.errors import ByokError
from byok.server.app import Exchange
from byok.server.grounding import Grounding
from byok.server.http.gate import Gate
from byok.server.http.reply import internal_error, json_response
from byok.server.target import choose_model
from byok.server.turn import AnswerTurn
from byok.threads import Runner
from byok.wiring.services import Services

_log = logging.getLogger(__name__)
_SESSION = "X-Request-Session-Id"


@dataclass(frozen=True, slots=True)
class _Pending:
    """A completion to be made; of those for the same `whom` only the newest counts."""

    turn: AnswerTurn
    reply: CompletionObject
    upstream: str
    whom: Hashable
    key: Hashable  # of the prediction


@dataclass(slots=True)
class _UnderWay:
    scope: asyncio.Timeout
    outdated: bool = False


class Completer:
    """Answers the Completing rows."""

    def __init__(self, services: Services, gate: Gate, grounding: Grounding) -> None:
        self._services = services
        self._gate = gate
        self._grounding = grounding
        self._shown = Shown()
        self._under_way: dict[Hashable, _UnderWay] = {}
        self._failures: dict[str, str] = {}  # upstream -> what was told of it last

    async def understand(
        self,
        row: Generate,
        decode: Decode[CompletionObject],
        body: Json,
        exchange: Exchange,
        run: Runner,
    ) -> Callable[[], Awaitable[StreamResponse]]:
        """Understand a request, and return what is left to do without its body."""
        services, request_id = self._services, exchange.request_id
        choice = await choose_model(services, row.purpose, body)
        name = choice.upstream.name
        job = await run(partial(decode, body, self._defaults(row, name), ignore_kind))
        names = await run(partial(blob_names, body))
        facts = partial(self._grounding.facts, names, request_id)
        reply = job.reply(ReplyFacts(request_id))
        cursor = reply.cursor
        key = (name, choice.model, row.path, cursor.path)
        # What is typed into a file of keys would leave the machine unasked.
        secret = job.chat.fim is not None and services.context.is_secret(cursor.path)
        if secret or not job.chat.messages:
            return partial(_ready, reply, facts, "")
        if rest := self._shown.rest(key, cursor):
            return partial(_ready, reply, facts, rest)
        session = exchange.request.headers.get(_SESSION, "")
        whom = (session, row.path, cursor.path) if session else request_id
        turn = AnswerTurn(services, choice, job.chat, reply, request_id)
        return partial(self._answer, _Pending(turn, reply, name, whom, key), facts)

    async def _answer(
        self, pending: _Pending, facts: Callable[[], Coroutine[Any, Any, ReplyFacts]]
    ) -> StreamResponse:
        """Ask, and find out meanwhile what is unknown of the client's blobs."""
        reply = pending.reply
        async with asyncio.TaskGroup() as group:
            known = group.create_task(facts())
            await self._complete(pending)
        self._shown.keep(pending.key, reply.cursor, reply.text)
        reply.facts = known.result()
        return json_response(reply.write(reply.text))

    async def _complete(self, pending: _Pending) -> None:
        """Ask; a failure is a completion without text."""
        name = pending.upstream
        try:
            await self._in_time(pending)
            self._failures.pop(name, None)
        except ByokError as error:
            # Once: the next key stroke would meet it again.
            if self._failures.get(name) != error.code:
                self._failures[name] = error.code
                _log.warning("no completions from %s: %s", name, error.log_text)
            pending.reply.fail_whole(error)
        except Exception:
            _log.exception("request %s failed", pending.turn.request_id)
            pending.reply.fail_whole(internal_error())

    async def _in_time(self, pending: _Pending) -> None:
        """Ask, and stop when enough came, the time is over, or a newer one asks."""
        turn, reply, gate = pending.turn, pending.reply, self._gate
        async with (
            gate.enter(wait=False),
            gate.raise_on_stop(),
            self._newest(pending.whom) as mine,
        ):
            try:
                async with mine.scope, turn.events() as batches:
                    async for batch in batches:
                        turn.lines(batch)
                        if turn.ended or reply.enough:
                            break
            except TimeoutError:
                if not mine.scope.expired():
                    raise
                if not mine.outdated:
                    reply.in_time()
                return
        if not turn.ended:
            turn.end()

    @asynccontextmanager
    async def _newest(self, whom: Hashable) -> AsyncIterator[_UnderWay]:
        """End the older one of the same editor and file: nobody waits for it."""
        now = asyncio.get_running_loop().time()
        older = self._under_way.get(whom)
        if older is not None and not older.scope.expired():
            older.outdated = True
            older.scope.reschedule(now)
        seconds = self._services.settings.completion.timeout_ms / 1000
        mine = self._under_way[whom] = _UnderWay(asyncio.timeout(seconds))
        try:
            yield mine
        finally:
            if self._under_way.get(whom) is mine:
                del self._under_way[whom]

    def _defaults(self, row: Generate, upstream: str) -> Defaults:
        """Return the user's defaults, with the shorter answer of a completion."""
        defaults = self._services.defaults(row.path, upstream)
        sampling = defaults.sampling
        most = self._services.settings.completion.max_tokens
        if sampling.max_tokens is not None:
            most = min(most, sampling.max_tokens)
        return replace(defaults, sampling=replace(sampling, max_tokens=most))


async def _ready(
    reply: CompletionObject, facts: Callable[[], Awaitable[ReplyFacts]], text: str
) -> StreamResponse:
    """Answer with what is known already."""
    reply.facts = await facts()
    return json_response(reply.write(text))
