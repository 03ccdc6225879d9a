"""Endpoint rows become answers: route, check, handle."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.augment.constant_replies import ConstantReply
from byok.augment.disabled_replies import off_answer
from byok.augment.endpoints import Completing, Generate, Local, Refused
from byok.augment.flags import pauses
from byok.augment.models import get_models
from byok.chat import Json
from byok.errors import BadRequest
from byok.routing import EndpointGroup, ServedBy, Service
from byok.server.app import Exchange
from byok.server.code_endpoints import CodeEndpoints
from byok.server.completions import Completer
from byok.server.folders import OpenFolders
from byok.server.forward import Forwarder
from byok.server.generate import Generator
from byok.server.http.body import parse_request, read_body
from byok.server.http.guard import Guard
from byok.server.http.large import LargeBodies
from byok.server.http.reply import json_response
from byok.server.http.stream import static_stream
from byok.server.official import Relay
from byok.server.openai_api import Forward, ListModels, model_list, one_model
from byok.server.own import Own
from byok.server.routes import Row, find_row
from byok.server.target import Elsewhere, choose_where, longest_body
from byok.threads import Runner
from byok.wiring.services import Services

_log = logging.getLogger(__name__)
Work: TypeAlias = Callable[[], Awaitable[StreamResponse]]
_MAX_TOLD = 1000
_FIRST_LIST_SECONDS = 0.25


class Endpoints:
    """Answers whatever is behind the guard."""

    def __init__(
        self,
        services: Services,
        guard: Guard,
        generator: Generator,
        completer: Completer,
        forwarder: Forwarder,
        relay: Relay,
        own: Own,
        *,
        body_gap: float = 15.0,
    ) -> None:
        self._services = services
        self._guard = guard
        self._generator = generator
        self._completer = completer
        self._forwarder = forwarder
        self._relay = relay
        self._own = own
        self._code = CodeEndpoints(services.context)
        self._body_gap = body_gap
        self._large = LargeBodies()
        self._folders = OpenFolders()
        self._told: set[str] = set()

    async def __call__(self, exchange: Exchange) -> StreamResponse:
        """Route, check and handle, in the order that the guard explains."""
        request, guard = exchange.request, self._guard
        row, known = find_row(request.raw_path)
        exchange.record.route = row.path if known else "(unknown)"
        limit = longest_body(self._services, row)
        guard.check_length(request, limit)
        if not known:
            self._tell(row.path)
        allowed = row.method if isinstance(row, ListModels) else "POST"
        if request.method == "POST":
            guard.check_content(request.headers)
        if request.method != allowed and (known or request.method != "GET"):
            return _not_allowed(exchange, allowed)
        length = request.content_length if request.body_exists else 0
        async with self._large.room(length) as run:
            work = await self._work(row, exchange, limit, run)
        return await work()

    async def _work(
        self, row: Row, exchange: Exchange, limit: int, run: Runner
    ) -> Work:
        """Read the body, and return what is left to do without it."""
        request = exchange.request
        raw = await read_body(request, limit, self._body_gap)
        body = await run(partial(parse_request, raw))
        if isinstance(row, Generate):
            self._folders.note(request.headers, body)
        elsewhere = choose_where(self._services, row, body)
        match elsewhere:
            case None:
                return await self._understand(row, exchange, raw, body, run)
            case Elsewhere(where=ServedBy.OFF):
                return await self._answer_disabled(elsewhere, exchange, body, run)
            case Elsewhere(group=EndpointGroup.MODELS):
                return partial(self._merge_models, raw, request)
            case Elsewhere(row=endpoint, group=group):
                locally = partial(self._locally, row, exchange, raw)
                return partial(
                    self._relay.answer, endpoint, group, raw, request, locally
                )

    async def _locally(
        self, row: Row, exchange: Exchange, raw: bytes
    ) -> StreamResponse:
        """Answer what the official service did not."""
        async with self._large.room(len(raw)) as run:
            body = await run(partial(parse_request, raw))
            work = await self._understand(row, exchange, raw, body, run)
            del body
        return await work()

    async def _answer_disabled(
        self, elsewhere: Elsewhere, exchange: Exchange, body: Json, run: Runner
    ) -> Work:
        row, group = elsewhere.row, elsewhere.group
        off = await run(partial(off_answer, row, group, body, exchange.request_id))
        if off.stream:
            return partial(static_stream, exchange.request, *off.lines)
        return partial(_ready, json_response(off.lines[0]))

    async def _understand(
        self,
        row: Row,
        exchange: Exchange,
        raw: bytes,
        body: dict[str, Any],
        run: Runner,
    ) -> Work:
        """Return what is left to do of an answer of byok's own."""
        request = exchange.request
        match row:
            case Generate(how=Completing(decode)):
                return await self._completer.understand(
                    row, decode, body, exchange, run
                )
            case Generate():
                asked = await self._generator.understand(
                    row, body, exchange.request_id, run
                )
                return partial(asked, request)
            case Forward():
                sent = await self._forwarder.forwarding(row, raw, body, run)
                return partial(self._forwarder.answer, sent, request)
            case ListModels(wanted=wanted):
                return partial(self._model_list, wanted)
            case Local():
                if row.answer is Service.RETRIEVAL:
                    body = dict(self._folders.add_folders(request.headers, body))
                return self._of_its_own(row.answer, body)
            case ConstantReply(stream=True):
                lines = () if row.body is None else (row.body,)
                return partial(static_stream, request, *lines)
            case ConstantReply():
                return partial(_ready, json_response(row.body or {}))
            case Refused():
                raise BadRequest(row.reason, code="not_served", status=row.status)

    def _of_its_own(self, service: Service, body: Json) -> Work:
        match service:
            case Service.MODELS:
                return self._models
            case Service.OFFICIAL:
                return partial(_ready, json_response(self._relay.status()))
            case _ if service in self._own:
                return partial(self._of_the_daemon, service, body)
            case _:
                return partial(self._context, service, body)

    async def _models(self) -> Response:
        return json_response(await self._own_models())

    async def _of_the_daemon(self, service: Service, body: Json) -> Response:
        return json_response(await self._own.answer(service, body))

    async def _merge_models(self, raw: bytes, request: BaseRequest) -> Response:
        ours = await self._own_models()
        return json_response(await self._relay.models(raw, request, ours))

    async def _own_models(self) -> Json:
        await self._catalog_known()
        catalog, router = self._services.catalog, self._services.router
        completion = self._services.settings.completion
        flags = pauses(chat_input=completion.chat_input, next_edit=completion.next_edit)
        return get_models(catalog.list_models(), router.default(), flags)

    async def _context(self, service: Service, body: Json) -> Response:
        return json_response(await self._code.answer(service, body))

    async def _model_list(self, wanted: str) -> Response:
        await self._catalog_known()
        listed = self._services.catalog.list_models()
        body = one_model(listed, wanted) if wanted else model_list(listed)
        return json_response(body)

    async def _catalog_known(self) -> None:
        """Use what is known of the models; wait a moment where that is nothing."""
        catalog = self._services.catalog
        catalog.refresh()
        if not catalog.list_models():
            await catalog.settle(_FIRST_LIST_SECONDS)

    def _tell(self, path: str) -> None:
        if path not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(path)
            _log.info("unknown path %.200r is answered with nothing", path)


async def _ready(response: Response) -> Response:
    return response


def _not_allowed(exchange: Exchange, allowed: str) -> Response:
    error = BadRequest(f"Use {allowed} here.", code="method_not_allowed", status=405)
    response = exchange.write_error(error)
    response.headers["Allow"] = allowed
    return response
