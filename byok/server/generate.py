"""Ask a model and write its answer: the one place where client and upstream meet."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from aiohttp.web import BaseRequest, StreamResponse

from byok.augment.body import first_text, flag
from byok.augment.conversation import place_of
from byok.augment.endpoints import Generate, Streamed, Whole
from byok.augment.prompts.editing import cut_file
from byok.augment.reply_job import Defaults, LineReply, ObjectReply
from byok.chat import Json
from byok.errors import ByokError
from byok.events import Notice
from byok.purposes import Purpose
from byok.server.conversations import Conversations
from byok.server.grounding import Grounding
from byok.server.http.gate import Gate
from byok.server.http.reply import internal_error, json_response
from byok.server.http.stream import LineStream
from byok.server.target import choose_model
from byok.server.turn import AnswerTurn
from byok.threads import Runner
from byok.upstream.router import Destination
from byok.wire.ndjson import encode_line
from byok.wiring.services import Services

_log = logging.getLogger(__name__)
_MAX_TOLD, _MAX_TOLD_MODELS, _MAX_SHOWN = 60, 1000, 80
Asked: TypeAlias = Callable[[BaseRequest], Awaitable[StreamResponse]]


class Generator:
    """Answers the Generate rows."""

    def __init__(
        self,
        services: Services,
        gate: Gate,
        grounding: Grounding,
        stream: Callable[[BaseRequest], LineStream] = LineStream,
        conversations: Conversations | None = None,
    ) -> None:
        self._services = services
        self._gate = gate
        self._grounding = grounding
        self._stream = stream
        self._conversations = conversations or Conversations()
        self._told_nodes: set[int] = set()
        self._told_models: set[tuple[str, str]] = set()  # by conversation
        self._defaults: dict[tuple[str, str], Defaults] = {}

    async def understand(
        self, row: Generate, body: Json, request_id: str, run: Runner
    ) -> Asked:
        """Understand a request, and return what is left to do without its body.

        That takes its turn in its conversation first, then one of the places: who waits
        for a turn keeps no place from others.
        """
        services = self._services
        choice = await choose_model(services, row.purpose, body)
        asker = (row.path, choice.upstream.name)
        if not (defaults := self._defaults.get(asker)):
            defaults = services.defaults(*asker)
            if choice.upstream.name in services.upstreams:  # else any name is possible
                self._defaults[asker] = defaults
        is_chat = row.purpose is Purpose.CHAT
        place = place_of(body) if is_chat else None
        notices = self._instead(choice, body) if is_chat else ()
        ground = self._grounding.ground
        match row.how:
            case Streamed(decode, in_file=in_file):
                body = await self._with_file(body) if in_file else body
                job = await run(partial(decode, body, defaults, self._tell_node))
                chat, facts = await ground(job, body, request_id, run)
                lines = job.reply(facts)
                turn = AnswerTurn(
                    services, choice, chat, lines, request_id, place, notices
                )
                return partial(self._stream_answer, turn, lines)
            case Whole(decode):
                task = await run(partial(decode, body, defaults, self._tell_node))
                chat, facts = await ground(task, body, request_id, run)
                whole = task.reply(facts)
                turn = AnswerTurn(
                    services, choice, chat, whole, request_id, place, notices
                )
                return partial(self._whole, turn, whole)

    async def _with_file(self, body: Json) -> Json:
        """Add the file that a client uploaded but sent only a part of."""
        if name := cut_file(body):
            file = await self._services.context.text_of(name)
            return {**body, "target_file_content": file}
        return body

    async def _stream_answer(
        self, turn: AnswerTurn, reply: LineReply, request: BaseRequest
    ) -> StreamResponse:
        async with self._stream(request) as stream:
            stream.begin_with(_line(reply.first))
            stream.beat_with(_line(reply.heartbeat))
            begun = False
            try:
                async with (
                    self._gate.raise_on_stop(),
                    self._conversations.turn(turn.place, stream.keep_alive),
                    self._gate.enter(),
                    turn.events() as batches,
                ):
                    stream.keep_alive()
                    async for batch in batches:
                        lines = turn.lines(batch)
                        if lines and not turn.ended:
                            begun = True
                            await stream.write(_lines(lines))
                if not turn.ended:
                    turn.end()
            except ConnectionError:
                raise  # the client is gone
            except Exception as error:
                failure = self._public_error(turn, error)
                if not (turn.admitted or stream.response.prepared):
                    raise failure from error
                if not turn.ended:  # a whole answer cannot fail any more
                    await self._end_broken(turn, reply, stream, failure, begun=begun)
                    return stream.response
            await stream.finish(_lines(turn.last))
        return stream.response

    async def _end_broken(
        self,
        turn: AnswerTurn,
        reply: LineReply,
        stream: LineStream,
        error: ByokError,
        *,
        begun: bool,
    ) -> None:
        """End a stream whose answer broke."""
        error = turn.note_failure(error)
        if not reply.keeps_part and not stream.response.prepared:
            raise error
        end = _lines(reply.fail(error))
        if begun and not reply.keeps_part:
            await stream.break_off(end)
        else:
            await stream.finish(end)

    async def _whole(
        self, turn: AnswerTurn, reply: ObjectReply, request: BaseRequest
    ) -> StreamResponse:
        del request
        try:
            async with (
                self._gate.raise_on_stop(),
                self._conversations.turn(turn.place),
                self._gate.enter(),
                turn.events() as batches,
            ):
                async for batch in batches:
                    turn.lines(batch)
            if not turn.ended:
                turn.end()
        except ByokError as error:
            if not turn.admitted:
                raise
            if not turn.ended:  # a whole answer cannot fail any more
                return json_response(reply.fail_whole(turn.note_failure(error)))
        return json_response(turn.last[-1])

    def _instead(self, choice: Destination, body: Json) -> tuple[Notice, ...]:
        """Say once in a conversation that another model answers than the chosen one."""
        told = (first_text(body, "conversation_id"), choice.instead_of)
        if not choice.instead_of or flag(body, "silent") or told in self._told_models:
            return ()
        if len(self._told_models) > _MAX_TOLD_MODELS:
            self._told_models.clear()
        self._told_models.add(told)
        wanted = self._services.redactor(choice.instead_of)[:_MAX_SHOWN]
        return (
            Notice(f"{wanted!r} is no model of byok's: {choice.model_id} answers."),
        )

    def _public_error(self, turn: AnswerTurn, error: Exception) -> ByokError:
        """Turn a failure into an error that can be told."""
        if isinstance(error, ByokError):
            return error
        _log.error("request %s failed", turn.request_id, exc_info=error)
        return internal_error()

    def _tell_node(self, kind: int) -> None:
        if kind not in self._told_nodes and len(self._told_nodes) < _MAX_TOLD:
            self._told_nodes.add(kind)
            _log.warning("request nodes of type %d are unknown and left out", kind)


def _line(line: Json | None) -> bytes:
    return b"" if line is None else encode_line(line)


def _lines(chunks: Iterable[Json]) -> bytes:
    return b"".join(map(encode_line, chunks))
