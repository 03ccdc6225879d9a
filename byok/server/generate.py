"""Endpoints that a model answers: a client's body becomes a question for the model.

The second phase is a `StreamedAnswer` or a `WholeAnswer`.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from byok.augment.body import first_text, flag
from byok.augment.conversation import place_of
from byok.augment.editor_context import ShownContext
from byok.augment.endpoints import Generate, Streamed, Whole
from byok.augment.prompts.editing import cut_file
from byok.augment.reply_job import (
    Decode,
    DecodeState,
    Defaults,
    LineReply,
    ObjectReply,
    ReplyFacts,
)
from byok.chat import ChatRequest, Json
from byok.events import Notice
from byok.features.base import PASS, Asking, Verdict
from byok.purposes import Purpose
from byok.retrieval.code_context import CodeContext
from byok.server.admission import Admission
from byok.server.answerable import Answerable
from byok.server.folders import window_of
from byok.server.grounding import Grounding
from byok.server.http.exchange import HttpExchange
from byok.server.http.stream import LineStream
from byok.server.model_answer import AnswerTools, ModelAnswer
from byok.server.streamed_answer import StreamedAnswer
from byok.server.target import ModelChooser
from byok.server.whole_answer import WholeAnswer
from byok.threads import Runner
from byok.upstream.chat_places import ChatPlaces
from byok.upstream.router import Destination

_log = logging.getLogger(__name__)
_MAX_TOLD = 60
R = TypeVar("R", bound=LineReply | ObjectReply)


@dataclass(frozen=True, slots=True)
class _Request:
    """A request whose model was chosen, while its body is read."""

    row: Generate
    body: Json
    exchange: HttpExchange
    run: Runner
    destination: Destination


class Generator:
    """Understands what the Generate rows ask."""

    def __init__(
        self,
        models: ModelChooser,
        defaults: Callable[[str, Destination, str], Defaults],
        context: CodeContext,
        grounding: Grounding,
        tools: AnswerTools,
        admission: Admission,
        open_stream: Callable[[HttpExchange], LineStream],
        shown: ShownContext,
        places: ChatPlaces,
        admit: Callable[[Asking], Awaitable[Verdict]],
    ) -> None:
        """Take what answers need; `defaults`: by endpoint, model and conversation."""
        self._models = models
        self._defaults = defaults
        self._context = context
        self._grounding = grounding
        self._tools = tools
        self._admission = admission
        self._open_stream = open_stream
        self._state = DecodeState(self._log_node, shown)
        self._places = places
        self._admit = admit
        self._told_nodes: set[int] = set()
        self._told_notes: set[tuple[str, str]] = set()  # by model

    async def understand(
        self, row: Generate, body: Json, exchange: HttpExchange, run: Runner
    ) -> Answerable:
        """Choose the model, read the body, and look up code that it is about.

        Raises:
            BadRequest: what the request is about is missing.
        """
        destination = await self._models.choose(row.purpose, body)
        if row.purpose is Purpose.CHAT and not flag(body, "silent"):
            window = window_of(exchange.request.headers)
            self._places.note(window, destination.upstream.name)
        place = place_of(body) if row.purpose is Purpose.CHAT else None
        if isinstance(row.how, Streamed) and row.how.in_file:
            body = await self._with_file(body)
        request = _Request(row, body, exchange, run, destination)
        match row.how:
            case Streamed(decode):
                answer, lines = await self._begin(request, decode)
                return StreamedAnswer(
                    exchange, answer, lines, place, self._admission, self._open_stream
                )
            case Whole(decode):
                answer, whole = await self._begin(request, decode)
                return WholeAnswer(answer, whole, place, self._admission)

    async def _begin(
        self, request: _Request, decode: Decode[R]
    ) -> tuple[ModelAnswer, R]:
        """Turn a body into a question for the model, and what writes the answer."""
        body, exchange, run = request.body, request.exchange, request.run
        destination = request.destination
        conversation = first_text(body, "conversation_id")
        defaults = self._defaults(request.row.path, destination, conversation)
        job = await run(partial(decode, body, defaults, self._state))
        if job.chat.prompt:
            exchange.record.prompt = f"{job.chat.prompt}@{defaults.prompts.version}"
        self._log_notes(destination, job.chat.notes)
        verdict = await self._judge(request, job.chat)
        if verdict.refusal is None and not job.chat.ended:
            ground = self._grounding.ground
            chat, facts = await ground(job, body, exchange.request_id, run)
        else:
            chat, facts = job.chat, ReplyFacts(exchange.request_id)
        reply = job.reply(facts)
        answer = ModelAnswer(
            destination,
            chat,
            reply,
            exchange.record,
            self._tools,
            notices=map(Notice, verdict.notices),
            refusal=verdict.refusal,
        )
        return answer, reply

    async def _judge(self, request: _Request, chat: ChatRequest) -> Verdict:
        """Ask the features, if a model is to be asked."""
        if not chat.messages or chat.ended:
            return PASS
        name, model = request.destination.upstream.name, request.destination.model
        shown = request.row.purpose is Purpose.CHAT and not chat.silent
        record = request.exchange.record
        return await self._admit(Asking(record, name, model, chat, shown))

    async def _with_file(self, body: Json) -> Json:
        """Add the file that a client uploaded but sent only a part of."""
        if name := cut_file(body):
            file = await self._context.text_of(name)
            return {**body, "target_file_content": file}
        return body

    def _log_notes(self, destination: Destination, notes: Iterable[str]) -> None:
        """Log once a model what its prompt or its tools had to leave out."""
        for note in notes:
            told = (destination.model_id, note)
            if told not in self._told_notes and len(self._told_notes) < _MAX_TOLD:
                self._told_notes.add(told)
                _log.info("%s: %s", destination.model_id, note)

    def _log_node(self, kind: int) -> None:
        """Log once that a type of node is unknown."""
        if kind not in self._told_nodes and len(self._told_nodes) < _MAX_TOLD:
            self._told_nodes.add(kind)
            _log.warning("ignoring request nodes of type %d: unknown", kind)
