"""Ask a model and write its answer: the one place where client and upstream meet."""

import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from aiohttp.web import BaseRequest, StreamResponse

from byok.augment.blobs import BlobNames, blob_names
from byok.augment.endpoints import Generate, Streamed, Whole
from byok.augment.history import call_ids
from byok.augment.job import Defaults, Facts, LineReply, ObjectReply
from byok.augment.prompts.editing import cut_file
from byok.chat import ChatRequest, Json
from byok.errors import ByokError
from byok.events import Finish, StreamEvent
from byok.server.choice import choose_model
from byok.server.gate import Gate
from byok.server.large import Run
from byok.server.reply import internal_error, json_response
from byok.server.stream import LineStream
from byok.services import Services
from byok.stage import Stage, chain
from byok.toolcalls.assemble import ToolCallAssembler
from byok.toolcalls.repair import Repair
from byok.upstream.router import Destination
from byok.wire.ndjson import encode_line

_log = logging.getLogger(__name__)
_SHOWN = 60
_FORGOTTEN = ChatRequest(())
Asked: TypeAlias = Callable[[BaseRequest], Awaitable[StreamResponse]]


class Generator:
    """Answers the Generate rows."""

    def __init__(
        self,
        services: Services,
        gate: Gate,
        stream: Callable[[BaseRequest], LineStream] = LineStream,
    ) -> None:
        self._services = services
        self._gate = gate
        self._stream = stream
        self._told_nodes: set[int] = set()
        self._defaults: dict[tuple[str, str], Defaults] = {}

    async def asked(
        self, row: Generate, body: Json, request_id: str, run: Run
    ) -> Asked:
        """Understand a request, and return what is left to do without its body."""
        services = self._services
        choice = await choose_model(services, row.purpose, body)
        place = (row.path, choice.upstream.name)
        if place not in self._defaults:
            self._defaults[place] = services.defaults(*place)
        defaults = self._defaults[place]
        names = await run(partial(blob_names, body))
        match row.how:
            case Streamed(decode, in_file=in_file):
                body = await self._with_file(body) if in_file else body
                job = await run(partial(decode, body, defaults, self._tell_node))
                lines = job.reply(await self._facts(names, request_id))
                turn = Turn(services, choice, job.chat, lines, request_id)
                return partial(self._streamed, turn, lines)
            case Whole(decode):
                task = await run(partial(decode, body, defaults, self._tell_node))
                whole = task.reply(await self._facts(names, request_id))
                turn = Turn(services, choice, task.chat, whole, request_id)
                return partial(self._whole, turn, whole)

    async def answer(self, asked: Asked, request: BaseRequest) -> StreamResponse:
        """Answer one request, streamed or whole."""
        async with self._gate.entered():
            return await asked(request)

    async def _with_file(self, body: Json) -> Json:
        """Add the file that a client uploaded but sent only a part of."""
        if name := cut_file(body):
            file = await self._services.context.text_of(name)
            return {**body, "target_file_content": file}
        return body

    async def _facts(self, names: BlobNames, request_id: str) -> Facts:
        if names.is_empty:
            return Facts(request_id)
        found = await self._services.context.facts(names)
        return Facts(request_id, found.unknown, found.checkpoint_found)

    async def _streamed(
        self, turn: "Turn", reply: LineReply, request: BaseRequest
    ) -> StreamResponse:
        async with self._stream(request) as stream:
            stream.begin_with(_line(reply.first))
            stream.beat_with(_line(reply.heartbeat))
            begun = False
            try:
                async with self._gate.ended_by_stop(), turn.events() as batches:
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
                failure = self._told(turn, error)
                if not turn.ended:  # a whole answer cannot fail any more
                    await self._broken(turn, reply, stream, failure, begun=begun)
                    return stream.response
            await stream.finish(_lines(turn.last))
        return stream.response

    async def _broken(
        self,
        turn: "Turn",
        reply: LineReply,
        stream: LineStream,
        error: ByokError,
        *,
        begun: bool,
    ) -> None:
        """End a stream whose answer broke."""
        error = turn.failed(error)
        if not reply.keeps_part and not stream.response.prepared:
            raise error
        end = _lines(reply.fail(error))
        if begun and not reply.keeps_part:
            await stream.break_off(end)
        else:
            await stream.finish(end)

    async def _whole(
        self, turn: "Turn", reply: ObjectReply, request: BaseRequest
    ) -> StreamResponse:
        del request
        try:
            async with self._gate.ended_by_stop(), turn.events() as batches:
                async for batch in batches:
                    turn.lines(batch)
            if not turn.ended:
                turn.end()
        except ByokError as error:
            if not turn.ended:  # a whole answer cannot fail any more
                return json_response(reply.failed(turn.failed(error)))
        return json_response(turn.last[-1])

    def _told(self, turn: "Turn", error: Exception) -> ByokError:
        """Turn a failure into an error that can be told."""
        if isinstance(error, ByokError):
            return error
        _log.error("request %s failed", turn.request_id, exc_info=error)
        return internal_error()

    def _tell_node(self, kind: int) -> None:
        if kind not in self._told_nodes and len(self._told_nodes) < _SHOWN:
            self._told_nodes.add(kind)
            _log.warning("request nodes of type %d are unknown and left out", kind)


class Turn:
    """One answer on its way from the upstream to the client."""

    def __init__(
        self,
        services: Services,
        choice: Destination,
        chat: ChatRequest,
        reply: LineReply | ObjectReply,
        request_id: str,
    ) -> None:
        self._services = services
        self._choice = choice
        self._chat = chat
        self._reply = reply
        self._stage: Stage[StreamEvent, Json] = reply
        self.request_id = request_id
        self.ended = False  # by the upstream's own last word
        self.last: list[Json] = []  # the lines that came with it

    def events(self) -> aclosing[AsyncGenerator[list[StreamEvent], None]]:
        """Ask the upstream, and give the events of its answer."""
        chat, self._chat = self._chat, _FORGOTTEN  # it may be large
        if not chat.messages:
            return aclosing(_nothing())
        self._stage = self._assembling(chat)
        return aclosing(self._choice.upstream.stream(chat, self._choice.model))

    def lines(self, batch: list[StreamEvent]) -> list[Json]:
        """Turn the events of one network read into lines.

        The last ones come with the read that holds the upstream's own last word.
        """
        ready = [c for event in batch for c in self._stage.feed(event)]
        if isinstance(batch[-1], Finish):
            self.end(ready)
        return ready

    def end(self, ready: Iterable[Json] = ()) -> None:
        """End the answer."""
        last = [*ready, *self._stage.flush()]
        self.ended, self.last = True, last
        if left_out := self._reply.left_out:
            _log.info("this client takes one tool call a turn; left out: %s", left_out)

    def failed(self, error: ByokError) -> ByokError:
        """Write a failure down, and make it fit to be told."""
        name = self._choice.upstream.name
        _log.warning("request %s to %s: %s", self.request_id, name, error.logged)
        error.args = (self._services.redactor(str(error)),)
        error.hint = self._services.redactor(error.hint)
        return error

    def _log_repair(self, repair: Repair) -> None:
        """Write down a repair: its rule, and the place where it began."""
        redactor = self._services.redactor
        before, after = _difference(redactor(repair.before), redactor(repair.after))
        _log.info(
            "tool call of %s repaired (%s): %s -> %s",
            repair.tool,
            repair.rule,
            before,
            after,
        )

    def _assembling(self, chat: ChatRequest) -> Stage[StreamEvent, Json]:
        assembler = ToolCallAssembler(
            chat.tools,
            new_id=lambda: f"call_{uuid.uuid4().hex[:24]}",
            mode=self._services.settings.tools.repair,
            user_text=chat.own_words,
            taken=call_ids(chat.messages),
            on_repair=self._log_repair,
        )
        return chain(assembler, self._reply)


async def _nothing() -> AsyncGenerator[list[StreamEvent], None]:
    return
    yield []  # makes it a generator


def _line(line: Json | None) -> bytes:
    return b"" if line is None else encode_line(line)


def _lines(chunks: Iterable[Json]) -> bytes:
    return b"".join(map(encode_line, chunks))


def _difference(before: str, after: str) -> tuple[str, str]:
    """Cut two texts around their first difference: code is not kept in logs whole."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    start = max(0, same - _SHOWN // 3)
    return repr(before[start : start + _SHOWN]), repr(after[start : start + _SHOWN])
