"""Endpoint rows become answers: guard, route, handle, log."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.augment.endpoints import Generate, Local, Refused, Service
from byok.augment.models import get_models
from byok.augment.quiet import Quiet
from byok.chat import Json
from byok.errors import BadRequest, ByokError, NotReady
from byok.openai_api import Forward, ListModels, model_list
from byok.server import challenge
from byok.server.body import parse_request, read_body
from byok.server.forward import Forwarder
from byok.server.gate import Gate
from byok.server.generate import Generator
from byok.server.guard import Guard
from byok.server.large import LargeBodies, Run
from byok.server.reply import error_response, internal_error, json_response
from byok.server.routes import Row, find_row, is_openai
from byok.server.stream import static_stream
from byok.services import Services

_log = logging.getLogger(__name__)
_access = logging.getLogger("byok.access")
_HEALTH = frozenset({"/health", "/healthz"})
_SMALL_BODY = 2**20
_MAX_TOLD = 1000
_FIRST_LIST_SECONDS = 0.25
_CLIENT_GONE = 499


class App:
    """The handler of every request."""

    def __init__(
        self,
        services: Services,
        guard: Guard,
        gate: Gate,
        generator: Generator,
        forwarder: Forwarder,
        *,
        prove: Callable[[Json], Json],
        body_gap: float = 15.0,
    ) -> None:
        self._services = services
        self._guard = guard
        self._gate = gate
        self._generator = generator
        self._forwarder = forwarder
        self._prove = prove
        self._body_gap = body_gap
        self._large = LargeBodies()
        self._told: set[str] = set()

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; every failure becomes an answer here."""
        started = time.monotonic()
        exchange = _Exchange(request, secrets.token_hex(8))
        status = _CLIENT_GONE
        try:
            response = await self._answered(exchange)
            status = response.status
            return response
        finally:
            _access.info(
                "%s %s %d %.0f ms %s",
                request.method if request.method.isalpha() else "?",
                exchange.route,
                status,
                (time.monotonic() - started) * 1000,
                exchange.request_id,
            )

    async def _answered(self, exchange: "_Exchange") -> StreamResponse:
        try:
            return await self._answer(exchange)
        except ByokError as error:
            failure = error
        except (asyncio.CancelledError, ConnectionError):
            raise
        except MemoryError:
            failure = NotReady("There is no memory for this request.", code="no_memory")
        except Exception:
            _log.exception("request %s failed", exchange.request_id)
            failure = internal_error()
        return self._failed(exchange, failure)

    def _failed(self, exchange: "_Exchange", error: ByokError) -> Response:
        redactor, openai = self._services.redactor, is_openai(exchange.request.raw_path)
        return error_response(error, exchange.request_id, redactor, openai=openai)

    async def _answer(self, exchange: "_Exchange") -> StreamResponse:
        """Check, route and handle, in the order that the guard explains."""
        request, guard = exchange.request, self._guard
        guard.check_origin(request)
        if request.raw_path in _HEALTH and request.method in ("GET", "HEAD"):
            exchange.route = request.raw_path
            return self._health()
        if request.raw_path == challenge.PATH and request.method == "POST":
            exchange.route = request.raw_path
            return await self._challenged(request)
        try:
            row, known = find_row(request.raw_path)
        except BadRequest:
            guard.check_token(request.headers)
            raise
        exchange.route = row.path if known else "(unknown)"
        limit = getattr(row, "max_body", _SMALL_BODY)
        guard.check_length(request, limit)
        guard.check_token(request.headers)
        if not known:
            self._tell(row.path)
        allowed = row.method if isinstance(row, ListModels) else "POST"
        if request.method == "POST":
            guard.check_content(request.headers)
        if request.method != allowed and (known or request.method != "GET"):
            return self._not_allowed(exchange, allowed)
        length = request.content_length if request.body_exists else 0
        async with self._large.room(length) as run:
            work = await self._understood(row, exchange, limit, run)
        return await work()

    async def _understood(
        self, row: Row, exchange: "_Exchange", limit: int, run: Run
    ) -> Callable[[], Awaitable[StreamResponse]]:
        """Read the body, and return what is left to do without it."""
        request = exchange.request
        raw = await read_body(request, limit, self._body_gap)
        body = await run(partial(parse_request, raw))
        match row:
            case Generate():
                turn = await self._generator.turn(row, body, exchange.request_id, run)
                return partial(self._generator.answer, turn, request)
            case Forward():
                sent = await self._forwarder.forwarding(row, raw, body, run)
                return partial(self._forwarder.answer, sent, request)
            case ListModels():
                return self._model_list
            case Local():
                if isinstance(row.answer, Service):
                    return self._models
                return partial(_ready, json_response(row.answer(body)))
            case Quiet(stream=True):
                return partial(static_stream, request, row.body)
            case Quiet():
                return partial(_ready, json_response(row.body or {}))
            case Refused():
                raise BadRequest(row.reason, code="not_served", status=row.status)

    async def _models(self) -> Response:
        await self._catalog_known()
        catalog, router = self._services.catalog, self._services.router
        return json_response(get_models(catalog.listed(), router.default()))

    async def _model_list(self) -> Response:
        await self._catalog_known()
        return json_response(model_list(self._services.catalog.listed()))

    async def _catalog_known(self) -> None:
        """Use what is known of the models; wait a moment where that is nothing."""
        catalog = self._services.catalog
        catalog.refresh()
        if not catalog.listed():
            await catalog.settle(_FIRST_LIST_SECONDS)

    def _not_allowed(self, exchange: "_Exchange", allowed: str) -> Response:
        error = BadRequest(
            f"Use {allowed} here.", code="method_not_allowed", status=405
        )
        response = self._failed(exchange, error)
        response.headers["Allow"] = allowed
        return response

    def _health(self) -> Response:
        if self._gate.stopping:
            return json_response({"status": "stopping"}, 503)
        return json_response({"status": "ok"})

    async def _challenged(self, request: BaseRequest) -> Response:
        """Prove to another process of this user that this is its daemon."""
        self._guard.check_length(request, challenge.MAX_BODY)
        self._guard.check_content(request.headers)
        raw = await read_body(request, challenge.MAX_BODY, self._body_gap)
        return json_response(self._prove(parse_request(raw)))

    def _tell(self, path: str) -> None:
        if path not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(path)
            _log.info("unknown path %.200r is answered with nothing", path)


async def _ready(response: Response) -> Response:
    return response


@dataclass(slots=True)
class _Exchange:
    request: BaseRequest
    request_id: str
    route: str = "(none)"
