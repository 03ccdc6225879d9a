"""Ask a model and write its answer: the one place where client and upstream meet."""

import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial

from aiohttp.web import BaseRequest, StreamResponse

from byok.augment.blobs import blob_names
from byok.augment.chat_reply import ChatReply, chunk, collected
from byok.augment.chat_request import Defaults, model_id
from byok.augment.endpoints import Generate
from byok.augment.history import call_ids
from byok.chat import ChatRequest, Json
from byok.errors import ByokError
from byok.events import Finish, StreamEvent
from byok.retrieval.code_context import BlobFacts
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

    async def turn(
        self, row: Generate, body: Json, request_id: str, run: Run
    ) -> "Turn":
        """Understand a request: which model is asked what."""
        choice = await self._services.router.choose(model_id(body))
        place = (row.path, choice.upstream.name)
        if place not in self._defaults:
            self._defaults[place] = self._services.defaults(*place)
        defaults = self._defaults[place]
        names = await run(partial(blob_names, body))
        chat = await run(partial(row.decode, body, defaults, self._tell_node))
        turn = Turn(self._services, choice, chat, request_id, streamed=row.stream)
        if not names.is_empty:
            turn.blobs = await self._services.context.facts(names)
        return turn

    async def answer(self, turn: "Turn", request: BaseRequest) -> StreamResponse:
        """Answer one request, streamed or whole."""
        async with self._gate.entered():
            if turn.streamed:
                return await self._streamed(turn, request)
            return await self._whole(turn)

    async def _streamed(self, turn: "Turn", request: BaseRequest) -> StreamResponse:
        async with self._stream(request) as stream:
            end: list[Json] = []
            if turn.blobs is not None:
                stream.begin_with(_lines(turn.opening()))
            try:
                async with self._gate.ended_by_stop(), turn.events() as batches:
                    async for batch in batches:
                        chunks = turn.chunks(batch)
                        if turn.ended:
                            end = chunks
                        elif chunks:
                            await stream.write(_lines(chunks))
                end = end or turn.last_chunks()
            except ByokError as error:
                end = end or turn.failed(error)  # a whole answer cannot fail any more
            except ConnectionError:
                raise  # the client is gone
            except Exception:
                _log.exception("request %s failed", turn.request_id)
                end = end or turn.failed(internal_error())
            await stream.finish(_lines(end))
        return stream.response

    async def _whole(self, turn: "Turn") -> StreamResponse:
        found: list[Json] = turn.opening()
        try:
            async with self._gate.ended_by_stop(), turn.events() as batches:
                async for batch in batches:
                    found += turn.chunks(batch)
            if not turn.ended:
                found += turn.last_chunks()
        except ByokError as error:
            if not turn.ended:
                if not turn.has_output:
                    raise
                found += turn.failed(error)
        return json_response(collected(found))

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
        request_id: str,
        *,
        streamed: bool,
    ) -> None:
        self._services = services
        self._choice = choice
        self._chat = chat
        self._reply = ChatReply(chat, request_id)
        self._stage: Stage[StreamEvent, Json] = self._reply
        self.request_id = request_id
        self.streamed = streamed
        self.ended = False  # the last chunks were given
        self.blobs: BlobFacts | None = None

    @property
    def has_output(self) -> bool:
        """Whether anything of the model's own is part of the answer."""
        return self._reply.has_output

    def events(self) -> aclosing[AsyncGenerator[list[StreamEvent], None]]:
        """Ask the upstream, and give the events of its answer."""
        chat, self._chat = self._chat, _FORGOTTEN  # it may be large
        if not chat.messages:
            return aclosing(_nothing())
        self._stage = self._assembling(chat)
        return aclosing(self._choice.upstream.stream(chat, self._choice.model))

    def chunks(self, batch: list[StreamEvent]) -> list[Json]:
        """Turn the events of one network read into chunks.

        The last ones come with the read that holds the upstream's own last word.
        """
        ready = [c for event in batch for c in self._stage.feed(event)]
        if isinstance(batch[-1], Finish):
            ready += self.last_chunks()
        return ready

    def last_chunks(self) -> list[Json]:
        """End the answer."""
        self.ended = True
        if left_out := self._reply.left_out:
            _log.info("this client takes one tool call a turn; left out: %s", left_out)
        return list(self._stage.flush())

    def failed(self, error: ByokError) -> list[Json]:
        """Give the chunks that end a broken answer."""
        name = self._choice.upstream.name
        _log.warning("request %s to %s: %s", self.request_id, name, error.logged)
        error.args = (self._services.redactor(str(error)),)
        error.hint = self._services.redactor(error.hint)
        return list(self._reply.fail(error))

    def opening(self) -> list[Json]:
        """Give the first chunk: what is unknown of the client's blobs, if it named any.

        Each name makes a client upload, so no other chunk repeats it.
        """
        if self.blobs is None:
            return []
        first = chunk()
        first["unknown_blob_names"] = list(self.blobs.unknown)
        first["checkpoint_not_found"] = not self.blobs.checkpoint_found
        return [first]

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
