"""Endpoint rows become answers: guard, route, handle, log."""

import asyncio
import logging
import secrets
import time
from dataclasses import dataclass
from typing import Any

from aiohttp.web import BaseRequest, Response, StreamResponse

from byok.augment.endpoints import Endpoint, Generate, Local, Refused, Service
from byok.augment.models import get_models
from byok.augment.quiet import Quiet
from byok.chat import Json
from byok.errors import BadRequest, ByokError
from byok.server.body import read_body
from byok.server.gate import Gate
from byok.server.generate import Generator
from byok.server.guard import Guard
from byok.server.reply import (
    error_response,
    internal_error,
    json_response,
    static_stream,
)
from byok.server.routes import find_row
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
        *,
        body_gap: float = 15.0,
    ) -> None:
        self._services = services
        self._guard = guard
        self._gate = gate
        self._generator = generator
        self._body_gap = body_gap
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
        except Exception:
            _log.exception("request %s failed", exchange.request_id)
            failure = internal_error()
        redactor = self._services.redactor
        return error_response(failure, exchange.request_id, redactor)

    async def _answer(self, exchange: "_Exchange") -> StreamResponse:
        """Check, route and handle, in the order that the guard explains."""
        request, guard = exchange.request, self._guard
        guard.check_origin(request)
        if request.raw_path in _HEALTH and request.method in ("GET", "HEAD"):
            exchange.route = request.raw_path
            return self._health()
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
        if request.method == "POST":
            guard.check_content(request.headers)
        elif known or request.method != "GET":
            return _not_allowed(exchange, self._services)
        body = await read_body(request, limit, self._body_gap)
        return await self._handle(row, exchange, body)

    async def _handle(
        self, row: Endpoint, exchange: "_Exchange", body: Json
    ) -> StreamResponse:
        match row:
            case Generate():
                return await self._generator.answer(
                    row, exchange.request, body, exchange.request_id
                )
            case Local():
                if isinstance(row.answer, Service):
                    return json_response(await self._models())
                return json_response(row.answer(body))
            case Quiet(stream=True):
                return await static_stream(exchange.request, row.body)
            case Quiet():
                return json_response(row.body or {})
            case Refused():
                raise BadRequest(row.reason, code="not_served", status=row.status)

    async def _models(self) -> dict[str, Any]:
        """Answer from what is known; wait only a moment where that is nothing."""
        catalog, router = self._services.catalog, self._services.router
        catalog.refresh()
        if not catalog.listed():
            await catalog.settle(_FIRST_LIST_SECONDS)
        return get_models(catalog.listed(), router.default())

    def _health(self) -> Response:
        if self._gate.stopping:
            return json_response({"status": "stopping"}, 503)
        return json_response({"status": "ok"})

    def _tell(self, path: str) -> None:
        if path not in self._told and len(self._told) < _MAX_TOLD:
            self._told.add(path)
            _log.info("unknown path %.200r is answered with nothing", path)


@dataclass(slots=True)
class _Exchange:
    request: BaseRequest
    request_id: str
    route: str = "(none)"


def _not_allowed(exchange: _Exchange, services: Services) -> Response:
    error = BadRequest("Use POST here.", code="method_not_allowed", status=405)
    response = error_response(error, exchange.request_id, services.redactor)
    response.headers["Allow"] = "POST"
    return response
