"""Dispatch of authorised requests: find the row, read the body, call the handler."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from aiohttp.web_response import StreamResponse
from msgspec import Struct, field

from byok.core.bounded import SaidOnce
from byok.core.chat import Json
from byok.core.errors import BadRequest, NotAllowed
from byok.core.record import Hop
from byok.core.routing import MAX_ID_LENGTH, EndpointGroup, Purpose, ServedBy, Service
from byok.core.threads import Runner
from byok.protocols.augment.body import first_text
from byok.protocols.augment.chat_request import model_id, purpose_of_chat
from byok.protocols.augment.constant_replies import ConstantReply
from byok.protocols.augment.endpoints import (
    Completing,
    Generate,
    Local,
    Refused,
    off_answer,
)
from byok.server.code_endpoints import OpenFolders, window_of
from byok.server.completions import Completer
from byok.server.daemon_endpoints import ModelLists
from byok.server.generate import Generator
from byok.server.http.body import LargeBodies, parse_request, read_body
from byok.server.http.guard import Guard, Requester
from byok.server.http.reply import HttpExchange
from byok.server.http.stream import static_stream
from byok.server.mcp.endpoint import ToolEndpoint
from byok.server.model_answer import LateAnswer, answer_by, answer_with
from byok.server.official import Relay
from byok.server.openai_api import CODEX_VERSION, Ask, Forward, ListModels
from byok.server.routes import (
    AgentTools,
    Elsewhere,
    Row,
    check_body,
    find_elsewhere,
    find_row,
    max_body_bytes,
)
from byok.server.translate import Translator
from byok.settings.sections import OfficialSettings
from byok.upstream.router import ChatPlaces

_log = logging.getLogger(__name__)
_MAX_LOGGED_PATHS = 1000
_CONVERSATION_HEADER = "conversation-id"  # of chats, as a field of their bodies
_MAX_ID_CHARS = 100
LocalHandler: TypeAlias = Callable[[Json], Awaitable[Json]]


class Endpoints(Struct, frozen=True):
    """Answers every request that has the token, by the kind of its row.

    `local` handles the Local rows, by service.
    """

    guard: Guard
    settings: OfficialSettings
    relay: Relay
    generator: Generator
    completer: Completer
    translator: Translator
    models: ModelLists
    local: Mapping[str, LocalHandler]
    places: ChatPlaces
    agents: ToolEndpoint
    body_gap: float = 15.0
    folders: OpenFolders = field(default_factory=OpenFolders)
    large: LargeBodies = field(default_factory=LargeBodies)
    logged_paths: SaidOnce = field(default_factory=lambda: SaidOnce(_MAX_LOGGED_PATHS))

    async def __call__(self, exchange: HttpExchange) -> StreamResponse:
        """Route, check, decode and answer; `http/guard.py` explains the order."""
        request, guard = exchange.request, self.guard
        row, is_known = find_row(request.raw_path)
        exchange.record.endpoint = row.path if is_known else "(unknown)"
        _check_rights(row, exchange.requester)
        limit = max_body_bytes(self.settings, row)
        guard.check_length(request, limit)
        if not is_known and self.logged_paths.is_new(row.path):
            _log.info("unknown path %.200r: replying with nothing", row.path)
        allowed = row.method if isinstance(row, ListModels) else "POST"
        if request.method == "POST":
            guard.check_content(request.headers)
        if request.method != allowed and (is_known or request.method != "GET"):
            return exchange.refuse_method(allowed)
        length = request.content_length if request.body_exists else 0
        async with self.large.slot(length) as run:
            answer = await self._prepare_answer(row, exchange, limit, run)
        return await answer()

    async def _prepare_answer(
        self, row: Row, exchange: HttpExchange, limit: int, run: Runner
    ) -> LateAnswer:
        """Read the body, and return the function that answers it."""
        raw = await read_body(exchange.request, limit, self.body_gap)
        body = await run(partial(parse_request, raw))
        check_body(row, body)
        _observe_body(exchange, raw, body)
        self._record_request(row, exchange, body)
        match find_elsewhere(self.settings, row, body):
            case None:
                return await self._decode(row, exchange, raw, body, run)
            case Elsewhere(Generate() | Local() as endpoint, group, ServedBy.OFF):
                request_id = exchange.request_id
                off = partial(off_answer, endpoint, group, body, request_id)
                return _answer_constantly(await run(off), exchange)
            case Elsewhere(group=EndpointGroup.MODELS):
                return partial(answer_by, partial(self._merge_models, raw, exchange))
            case Elsewhere(row=endpoint, group=group):
                locally = partial(self._answer_locally, row, exchange, raw)
                return partial(
                    self.relay.answer, endpoint, group, raw, exchange, locally
                )

    async def _answer_locally(
        self, row: Row, exchange: HttpExchange, raw: bytes
    ) -> StreamResponse:
        """Answer a request that the official service did not answer."""
        async with self.large.slot(len(raw)) as run:
            body = await run(partial(parse_request, raw))
            answer = await self._decode(row, exchange, raw, body, run)
            del body
        return await answer()

    async def _merge_models(self, raw: bytes, exchange: HttpExchange) -> Json:
        """Return the models of the official service and of byok in one list."""
        ours = await self.models.for_editor({})
        return await self.relay.models(raw, exchange.request, ours)

    def _record_request(self, row: Row, exchange: HttpExchange, body: Json) -> None:
        """Record the folders, purpose and model of a request, whoever answers it."""
        record = exchange.record
        if isinstance(row, Generate):
            folders = self.folders.remember(exchange.request.headers, body)
            record.folders = tuple(folders)
            is_chat = row.purpose is Purpose.CHAT
            record.purpose = purpose_of_chat(body) if is_chat else row.purpose
            record.model_asked = model_id(body)[:MAX_ID_LENGTH]
        elif isinstance(row, Forward):
            record.purpose = Purpose.CHAT if isinstance(row, Ask) else ""
            record.model_asked = first_text(body, "model")[:MAX_ID_LENGTH]

    async def _decode(
        self,
        row: Row,
        exchange: HttpExchange,
        raw: bytes,
        body: dict[str, Any],
        run: Runner,
    ) -> LateAnswer:
        """Decode a body, and return the function that answers; `raw` are its bytes.

        Raises:
            BadRequest: the body cannot be used, or the endpoint is not served.
        """
        match row:
            case Generate(reply=Completing(decode)):
                return await self.completer.prepare(row, decode, body, exchange, run)
            case Generate():
                return await self.generator.prepare(row, body, exchange, run)
            case Forward():
                return await self.translator.prepare(row, raw, body, exchange, run)
            case ListModels(model_id=name):
                codex = CODEX_VERSION in exchange.request.query
                answer = partial(self.models.for_openai, name, is_for_codex=codex)
                return partial(answer_by, answer)
            case AgentTools():
                return partial(self.agents.answer, exchange, body)
            case Local(service=service):
                if service is Service.RETRIEVAL:
                    body = self._add_window(exchange, body)
                return partial(answer_by, partial(self.local[service], body))
            case ConstantReply():
                return _answer_constantly(row, exchange)
            case Refused():
                raise BadRequest(row.reason, code="not_served", status=row.status)

    def _add_window(self, exchange: HttpExchange, body: Json) -> dict[str, Any]:
        """Add to a question the open folders and the conversation of its window."""
        headers, record = exchange.request.headers, exchange.record
        record.chat_upstreams = self.places.find(window_of(headers))
        body = self.folders.add_folders(headers, body)
        return {**body, "conversation_id": record.conversation}


def _answer_constantly(row: ConstantReply, exchange: HttpExchange) -> LateAnswer:
    if row.stream:
        return partial(static_stream, exchange, *row.lines)
    return partial(answer_with, row.lines[0])


def _check_rights(row: Row, requester: Requester) -> None:
    """Refuse clients the endpoints of byok's own commands.

    The token of clients stands in settings that editors copy to other machines, so it
    must not give access to the owner's files, settings and keys.

    Raises:
        NotAllowed: 403, only byok's own commands may use this endpoint.
    """
    if isinstance(row, Local) and row.for_owner and requester is not Requester.OWNER:
        raise NotAllowed(
            "Only byok's own commands may do this.",
            code="owner_only",
            hint="Use the command, such as byok index add.",
        )


def _observe_body(exchange: HttpExchange, raw: bytes, body: dict[str, Any]) -> None:
    """Record the conversation, and pass the body to the tap."""
    record = exchange.record
    named = first_text(body, "conversation_id")
    conversation = named or exchange.request.headers.get(_CONVERSATION_HEADER, "")
    record.conversation = conversation[:_MAX_ID_CHARS]
    if record.tap is not None:
        record.tap(Hop.FROM_CLIENT, raw)
