"""Endpoints that a model answers: which bodies become a question, and of what.

The second phase is a `StreamedAnswer` or a `WholeAnswer`.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
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
    WholeAnswer,
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

# Which model answers a request: the user's choice for its purpose, or the client's.


class ModelChooser(Struct, frozen=True):
    """Chooses by purpose and by what the client names."""

    settings: ModelSettings
    router: Router
    fallbacks: Fallbacks
    moments: Moments
    decoding: DecodeState = field(default_factory=DecodeState)

    async def choose(
        self, purpose: Purpose, body: Json, run: Runner = inline
    ) -> Destination:
        """Return the upstream and the model that answer a body, and if not, others.

        What the user set for a purpose counts more than what the client names, but in
        a chat: there the user chooses in the client, until a moment comes for which
        the settings name a model. A silent chat is a job of the client's own, like
        those of the other endpoints. Where nobody chose a model, small jobs and
        completions get a small one of the same upstream, and next edits one that is
        made for them; but that one cannot be told what the user wants.
        """
        named = model_id(body)
        if purpose is Purpose.NEXT_EDIT and _wish(body):
            purpose = Purpose.EDIT
        if purpose is Purpose.CHAT:
            purpose = purpose_of_chat(body)
        wanted = self.settings.for_purpose(purpose)
        if wanted and not (purpose is Purpose.CHAT and named):
            chosen = await self.router.choose_listed(wanted)
        else:
            chosen = await self.router.choose(named)
            chosen = self.router.choose_for(purpose, chosen)
        conversation = first_text(body, "conversation_id")
        if purpose is Purpose.CHAT:
            by = BY_CLIENT if named else BY_PURPOSE if wanted else BY_DEFAULT
            facts = ChatFacts()
            if self.moments.models:
                facts = await run(partial(self._read_facts, body))
            chosen = await self.moments.choose(chosen, by, facts, conversation)
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


def _wish(body: Json) -> str:
    return first_text(body, "instruction").strip()


# Adds retrieved code to a chat, and finds out which blobs are not stored here.


_log = logging.getLogger(__name__)
T = TypeVar("T")


class Grounding(Struct, frozen=True):
    """Looks up the code that requests are about.

    Where uploads go elsewhere (`keeps_uploads` is False), there is nothing to find, and
    nothing is called unknown: a client would upload it at once.
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
        """Return the chat, with code if it wants some, and the facts about blobs."""
        if not self.keeps_uploads:
            return job.chat, ReplyFacts(request_id)
        wanted = job.wanted
        if wanted is not None and self.settings.retrieval:
            found = await self._find_code(wanted)
            facts = ReplyFacts(
                request_id, found.unknown, found.checkpoint_found, found.chunks
            )
            return with_passages(job.chat, found.text), facts
        names = wanted.blobs if wanted else await run(partial(blob_names, body))
        return job.chat, await self.facts(names, request_id)

    async def facts(self, names: BlobNames, request_id: str) -> ReplyFacts:
        """Return which of the blobs that a request names are not stored here."""
        if names.is_empty or not self.keeps_uploads:
            return ReplyFacts(request_id)
        found = await _look_up(
            self.context.find_unknown(names),
            UnknownBlobs(),
            "nothing is said of blobs",
        )
        return ReplyFacts(request_id, found.names, found.checkpoint_found)

    async def _find_code(self, wanted: CodeQuestion) -> CodeContextBlock:
        """Find code."""
        found = self.context.passages(wanted, self.settings.context_chars)
        return await _look_up(
            found, CodeContextBlock(), "a chat continues without code"
        )


async def _look_up(lookup: Awaitable[T], nothing: T, what: str) -> T:
    """Await a lookup; if it fails, log that and return `nothing`."""
    try:
        return await lookup
    except ByokError as error:
        _log.warning("%s: %s", what, error.sentence)
    except Exception:
        _log.exception("%s", what)
    return nothing


_MAX_TOLD = 60
R = TypeVar("R", bound=LineReply | ObjectReply)


class Request(Struct, frozen=True):
    """A request whose model was chosen, while its body is read."""

    row: Generate
    body: Json
    exchange: HttpExchange
    run: Runner
    destination: Destination
    defaults: Defaults


class Generator(Struct, frozen=True):
    """Understands what the Generate rows ask.

    `defaults` are by endpoint, model and conversation. What is left out of a question
    is logged once a model. `say` puts the sentences of byok's in chats into the user's
    language.
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
    said_notes: SaidOnce = field(default_factory=lambda: SaidOnce(_MAX_TOLD))

    async def understand(
        self, row: Generate, body: Json, exchange: HttpExchange, run: Runner
    ) -> LateAnswer:
        """Choose the model, read the body, and look up code that it is about.

        Raises:
            BadRequest: what the request is about is missing.
        """
        request = await self.begin(row, body, exchange, run)
        if row.purpose is Purpose.CHAT and not flag(body, "silent"):
            window = window_of(exchange.request.headers)
            self.places.note(window, request.destination.upstream.name)
        place = place_of(body) if row.purpose is Purpose.CHAT else None
        if isinstance(row.how, Streamed) and row.how.in_file:
            request = replace(request, body=await self._with_file(body))
        match row.how:
            case Streamed(decode):
                lines = await self._ask(request, decode)
                return StreamedAnswer(
                    exchange, lines, place, self.admission, self.open_stream
                ).answer
            case Whole(decode):
                whole = await self._ask(request, decode)
                return WholeAnswer(whole, place, self.admission).answer

    async def _ask(self, request: Request, decode: Decode[R]) -> ModelAnswer[R]:
        """Turn a body into a question for the model, and what writes the answer."""
        body, exchange, run = request.body, request.exchange, request.run
        job = await self.read(request, decode)
        verdict = await self.judge(request, job.chat)
        if verdict.chat is not None:
            job = replace(job, chat=verdict.chat)
        if not verdict.ends:
            ground = self.grounding.ground
            chat, facts = await ground(job, body, exchange.request_id, run)
        else:
            facts, chat = ReplyFacts(exchange.request_id), job.chat
        is_asked = bool(chat.messages) and not verdict.answer
        reply = job.reply(replace(facts, is_asked=is_asked, say=self.say))
        asked, record = request.destination, exchange.record
        return ModelAnswer(asked, chat, reply, record, self.tools, verdict)

    async def begin(
        self, row: Generate, body: Json, exchange: HttpExchange, run: Runner
    ) -> Request:
        """Choose the model, and find the defaults for it."""
        destination = await self.models.choose(row.purpose, body, run)
        conversation = first_text(body, "conversation_id")
        defaults = self.defaults(row.path, destination, conversation)
        defaults = replace(defaults, state=self.models.decoding)
        return Request(row, body, exchange, run, destination, defaults)

    async def read(self, request: Request, decode: Decode[R]) -> ReplyJob[R]:
        """Decode the body; what would leave the machine unasked is no question."""
        job = await request.run(partial(decode, request.body, request.defaults))
        self._log_notes(request.destination, job.chat.notes)
        if self._is_unasked_secret(request, job.chat):
            return replace(job, chat=ChatRequest(()))
        return job

    def _is_unasked_secret(self, request: Request, chat: ChatRequest) -> bool:
        """Tell whether a pause in typing, and no wish, is about a file of keys."""
        body = request.body
        is_next = request.row.purpose is Purpose.NEXT_EDIT and not _wish(body)
        is_unasked = is_next or chat.fim is not None
        return is_unasked and self.context.is_secret(first_text(body, "path"))

    async def judge(self, request: Request, chat: ChatRequest) -> Verdict:
        """Ask the features, if a model is to be asked."""
        if not chat.messages:
            return PASS
        name, model = request.destination.upstream.name, request.destination.model
        shown = request.row.purpose is Purpose.CHAT and not chat.silent
        record = request.exchange.record
        if chat.prompt:
            record.prompt = f"{chat.prompt}@{request.defaults.prompts.version}"
        asking = Asking(record, name, model, chat, shown, request.run)
        return await self.admit(asking)

    async def _with_file(self, body: Json) -> Json:
        """Add the file that a client uploaded but sent only a part of."""
        if name := cut_file(body):
            file = await self.context.text_of(name)
            return {**body, "target_file_content": file}
        return body

    def _log_notes(self, destination: Destination, notes: Iterable[str]) -> None:
        """Log once a model what its prompt or its tools had to leave out."""
        for note in notes:
            if self.said_notes.is_new(f"{destination.model_id}: {note}"):
                _log.info("%s: %s", destination.model_id, note)
