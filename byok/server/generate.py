"""Endpoints that a model answers: choose the model, decode the body, add code to it.

The result answers the request afterwards: a `StreamedAnswer` or `answer_whole`.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import SaidOnce
from byok.core.chat import ChatRequest, Json
from byok.core.code_query import BlobNames, CodeContextBlock, CodeQuestion, UnknownBlobs
from byok.core.errors import ByokError
from byok.core.routing import Purpose
from byok.core.threads import Runner, inline
from byok.features.base import PASS, Asking, Verdict
from byok.protocols.augment.blobs import blob_names
from byok.protocols.augment.body import first_text, flag
from byok.protocols.augment.chat_job import with_passages
from byok.protocols.augment.chat_request import (
    has_parent,
    model_id,
    place_of,
    plain_messages,
    purpose_of_chat,
)
from byok.protocols.augment.endpoints import Generate, Streamed, Whole
from byok.protocols.augment.prompts.edit import cut_file
from byok.protocols.augment.reply_job import (
    Decode,
    DecodeState,
    Defaults,
    LineReply,
    ObjectReply,
    ReplyFacts,
    ReplyJob,
)
from byok.protocols.augment.system import is_agent, only_reads
from byok.protocols.augment.tools import read_tools
from byok.search.retrieval.code_context import CodeContext
from byok.server.admission import Admission
from byok.server.code_endpoints import window_of
from byok.server.http.reply import HttpExchange
from byok.server.http.stream import LineStream
from byok.server.model_answer import (
    AnswerTools,
    LateAnswer,
    ModelAnswer,
    StreamedAnswer,
    answer_whole,
)
from byok.settings.sections import ChatSettings, ModelSettings
from byok.upstream.base import Destination
from byok.upstream.fallback import Fallbacks
from byok.upstream.moments import (
    BY_CLIENT,
    BY_DEFAULT,
    BY_PURPOSE,
    ChatFacts,
    Moments,
    facts_of,
)
from byok.upstream.router import ChatPlaces, Router

_log = logging.getLogger(__name__)
_MAX_LOGGED_NOTES = 60
T = TypeVar("T")
R = TypeVar("R", bound=LineReply | ObjectReply)


class ModelChooser(Struct, frozen=True):
    """Chooses a model by the purpose of a request and by the name in it, if any."""

    settings: ModelSettings
    router: Router
    fallbacks: Fallbacks
    moments: Moments
    decoding: DecodeState = field(default_factory=DecodeState)

    async def choose(
        self, purpose: Purpose, body: Json, run: Runner = inline
    ) -> Destination:
        """Return the upstream and the model for a body, with their fallbacks.

        The user's setting for a purpose outranks the name in the request, except in a
        chat: there the user chooses in the client, until a moment comes for which the
        settings name a model. A silent chat is a job of the client's own, like those
        of the other endpoints. If neither names a model, small jobs and completions get
        a small one of the same upstream, and next edits one that is made for them. Such
        a model takes no instruction, so a next edit with one counts as an edit.
        """
        named = model_id(body)
        if purpose is Purpose.NEXT_EDIT and _instruction(body):
            purpose = Purpose.EDIT
        if purpose is Purpose.CHAT:
            purpose = purpose_of_chat(body)
        configured = self.settings.for_purpose(purpose)
        if configured and not (purpose is Purpose.CHAT and named):
            chosen = await self.router.choose_listed(configured)
        else:
            chosen = await self.router.choose(named)
            chosen = self.router.choose_for(purpose, chosen)
        conversation = first_text(body, "conversation_id")
        if purpose is Purpose.CHAT:
            rule = BY_CLIENT if named else BY_PURPOSE if configured else BY_DEFAULT
            facts = ChatFacts()
            if self.moments.models:
                facts = await run(partial(self._read_facts, body))
            chosen = await self.moments.choose(chosen, rule, facts, conversation)
        return await self.fallbacks.prepare(chosen, purpose, conversation)

    def _read_facts(self, body: Json) -> ChatFacts:
        tools = read_tools(body, self.decoding.read_tool)
        has_mcp = any(tool.mcp_server_name for tool in tools)
        return facts_of(
            plain_messages(body, self.decoding),
            tools,
            has_parent=has_parent(body),
            only_reads=is_agent(body) and not has_mcp and only_reads(tools),
        )


def _instruction(body: Json) -> str:
    return first_text(body, "instruction").strip()


class Grounding(Struct, frozen=True):
    """Adds retrieved code to chats, and finds out which blobs are not stored here.

    If uploads go elsewhere (`keeps_uploads` is False), there is no code to find, and no
    blob is reported as unknown: a client would upload it at once.
    """

    context: CodeContext
    settings: ChatSettings
    keeps_uploads: bool

    async def ground(
        self,
        job: ReplyJob[LineReply | ObjectReply],
        body: Json,
        request_id: str,
        run: Runner,
    ) -> tuple[ChatRequest, ReplyFacts]:
        """Return the chat, with code if the job asks for it, and facts about blobs."""
        if not self.keeps_uploads:
            return job.chat, ReplyFacts(request_id)
        question = job.code_question
        if question is not None and self.settings.retrieval:
            block = await self._find_code(question)
            facts = ReplyFacts(
                request_id, block.unknown, block.checkpoint_found, block.chunks
            )
            return with_passages(job.chat, block.text), facts
        names = question.blobs if question else await run(partial(blob_names, body))
        return job.chat, await self.facts(names, request_id)

    async def facts(self, names: BlobNames, request_id: str) -> ReplyFacts:
        """Return which of the named blobs are not stored here."""
        if names.is_empty or not self.keeps_uploads:
            return ReplyFacts(request_id)
        unknown = await _look_up(
            self.context.find_unknown(names),
            UnknownBlobs(),
            "nothing is said of blobs",
        )
        return ReplyFacts(request_id, unknown.names, unknown.checkpoint_found)

    async def _find_code(self, question: CodeQuestion) -> CodeContextBlock:
        """Find code."""
        passages = self.context.passages(question, self.settings.context_chars)
        return await _look_up(
            passages, CodeContextBlock(), "a chat continues without code"
        )


async def _look_up(lookup: Awaitable[T], fallback: T, consequence: str) -> T:
    """Await a lookup; if it fails, log the consequence and return the fallback."""
    try:
        return await lookup
    except ByokError as error:
        _log.warning("%s: %s", consequence, error.sentence)
    except Exception:
        _log.exception("%s", consequence)
    return fallback


class Request(Struct, frozen=True):
    """A request whose model was chosen, and whose body is to be decoded."""

    row: Generate
    body: Json
    exchange: HttpExchange
    run: Runner
    destination: Destination
    defaults: Defaults


class Generator(Struct, frozen=True):
    """Decodes the requests of the Generate rows.

    `defaults` returns those of an endpoint, a model and a conversation. `say`
    translates byok's own sentences in chats into the user's language. What a prompt
    leaves out is logged once for each model (`logged_notes`).
    """

    models: ModelChooser
    defaults: Callable[[str, Destination, str], Defaults]
    context: CodeContext
    grounding: Grounding
    tools: AnswerTools
    admission: Admission
    open_stream: Callable[..., LineStream]
    places: ChatPlaces
    admit: Callable[[Asking], Awaitable[Verdict]]
    say: Callable[[str], str]
    logged_notes: SaidOnce = field(default_factory=lambda: SaidOnce(_MAX_LOGGED_NOTES))

    async def prepare(
        self, row: Generate, body: Json, exchange: HttpExchange, run: Runner
    ) -> LateAnswer:
        """Choose the model, decode the body, and look up the code that it is about.

        Raises:
            BadRequest: the body lacks the subject of the request.
        """
        request = await self.choose_model(row, body, exchange, run)
        if row.purpose is Purpose.CHAT and not flag(body, "silent"):
            window = window_of(exchange.request.headers)
            self.places.note(window, request.destination.upstream.name)
        place = place_of(body) if row.purpose is Purpose.CHAT else None
        in_file = isinstance(row.reply, Streamed) and row.reply.in_file
        if in_file and (name := cut_file(body)):
            # The client uploaded the whole file, and sent only a part of it.
            file = await self.context.text_of(name)
            request = replace(request, body={**body, "target_file_content": file})
        match row.reply:
            case Streamed(decode):
                lines = await self._ask(request, decode)
                return StreamedAnswer(
                    exchange, lines, place, self.admission, self.open_stream
                ).answer
            case Whole(decode):
                whole = await self._ask(request, decode)
                return partial(answer_whole, whole, place, self.admission)

    async def _ask(self, request: Request, decode: Decode[R]) -> ModelAnswer[R]:
        """Build the question for the model, and the reply that formats its answer."""
        body, exchange, run = request.body, request.exchange, request.run
        job = await self.decode(request, decode)
        verdict = await self.ask_features(request, job.chat)
        if verdict.chat is not None:
            job = replace(job, chat=verdict.chat)
        if not verdict.ends:
            ground = self.grounding.ground
            chat, facts = await ground(job, body, exchange.request_id, run)
        else:
            facts, chat = ReplyFacts(exchange.request_id), job.chat
        is_asked = bool(chat.messages) and not verdict.answer
        reply = job.reply(replace(facts, is_asked=is_asked, say=self.say))
        destination, record = request.destination, exchange.record
        return ModelAnswer(destination, chat, reply, record, self.tools, verdict)

    async def choose_model(
        self, row: Generate, body: Json, exchange: HttpExchange, run: Runner
    ) -> Request:
        """Choose the model, and find the defaults for it."""
        destination = await self.models.choose(row.purpose, body, run)
        conversation = first_text(body, "conversation_id")
        defaults = self.defaults(row.path, destination, conversation)
        defaults = replace(defaults, state=self.models.decoding)
        return Request(row, body, exchange, run, destination, defaults)

    async def decode(self, request: Request, decode: Decode[R]) -> ReplyJob[R]:
        """Decode the body; a secret that nobody asked about becomes no question."""
        job = await request.run(partial(decode, request.body, request.defaults))
        model_id = request.destination.model_id
        for note in job.chat.notes:
            if self.logged_notes.is_new(f"{model_id}: {note}"):
                _log.info("%s: %s", model_id, note)
        if self._is_unasked_secret(request, job.chat):
            return replace(job, chat=ChatRequest(()))
        return job

    def _is_unasked_secret(self, request: Request, chat: ChatRequest) -> bool:
        """Tell whether a file of secrets would be sent because of a pause in typing."""
        body = request.body
        is_next_edit = request.row.purpose is Purpose.NEXT_EDIT
        is_unasked = (is_next_edit and not _instruction(body)) or chat.fim is not None
        return is_unasked and self.context.is_secret(first_text(body, "path"))

    async def ask_features(self, request: Request, chat: ChatRequest) -> Verdict:
        """Ask the features whether the model may be asked; without messages pass."""
        if not chat.messages:
            return PASS
        name, model = request.destination.upstream.name, request.destination.model
        is_visible = request.row.purpose is Purpose.CHAT and not chat.silent
        record = request.exchange.record
        if chat.prompt:
            record.prompt = f"{chat.prompt}@{request.defaults.prompts.version}"
        asking = Asking(record, name, model, chat, is_visible, request.run)
        return await self.admit(asking)
