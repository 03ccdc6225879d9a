"""Entry point of every request: access checks, /health, its record, the access log.

The endpoints are loaded while the port is already open: a request that arrives before
they are ready waits for them, but /health is answered at once.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct, field

from byok.core.daemon import challenge
from byok.core.daemon.logs import LogLines
from byok.core.errors import ByokError, NotAllowed
from byok.core.platform.process import give_back_free_memory
from byok.core.record import (
    CLIENT_GONE,
    Head,
    Hop,
    Observers,
    RequestRecord,
    begin_record,
)
from byok.core.redact import Redactor
from byok.features.base import Number, OwnPage
from byok.features.running import Features
from byok.server.admission import Gate, shutting_down
from byok.server.dashboard.endpoint import (
    PAGE_HEADERS,
    PREFIX,
    DashboardEndpoint,
    asks_for_worker,
    end_worker,
    is_visit,
)
from byok.server.http.body import read_object
from byok.server.http.deadlines import Timing
from byok.server.http.guard import Guard, client_of
from byok.server.http.protocol import note_token
from byok.server.http.reply import (
    BASE_HEADERS,
    HttpExchange,
    body_bytes,
    explain_failure,
    id_headers,
    json_response,
)
from byok.server.openai_api import takes_api_key

if TYPE_CHECKING:
    from byok.core.chat import Json

_access = logging.getLogger("byok.access")
_MAX_MODEL_CHARS = 100
_BATCH_SECONDS = 0.05
_HEALTH = frozenset({"/health", "/healthz"})
Handler: TypeAlias = Callable[[HttpExchange], Awaitable[StreamResponse]]


class App(Struct, eq=False):
    """The handler of every request; `requests` counts those in progress.

    `prove` answers a challenge. `rest_seconds` are the seconds after the last request
    until free memory is returned to the system, and until caches are emptied, too.
    """

    guard: Guard
    gate: Gate
    redactor: Redactor
    observers: Observers
    prove: Callable[["Json"], "Json"]
    features: Features | None = None
    dashboard: DashboardEndpoint | None = None
    timing: Timing = Timing()
    rest_seconds: tuple[float, float] = (5.0, 60.0)
    requests: int = 0
    _endpoints: Handler | None = None
    _endpoints_ready: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _shrink: Callable[[], None] = lambda: None
    _memory_timer: asyncio.TimerHandle | None = None

    def open(self, endpoints: Handler, shrink: Callable[[], None]) -> None:
        """Set the handler; requests that waited for it go on.

        After a minute without requests `shrink` is called in a thread to empty caches.
        """
        self._endpoints = endpoints
        self._shrink = shrink
        self._endpoints_ready.set()

    def close(self) -> None:
        """Release waiting requests with an error: the daemon stops."""
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        self._endpoints_ready.set()

    async def wait_until_idle(self) -> None:
        """Wait until no request is in progress."""
        while self.requests:
            self._idle.clear()
            await self._idle.wait()

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; every exception becomes an error response here."""
        agent = request.headers.get("User-Agent", "")
        record = begin_record(
            RequestRecord(secrets.token_hex(8), request.method, client=client_of(agent))
        )
        self.requests += 1
        self.observers.start(record)
        if record.tap is not None:
            line = f"{request.method} {request.raw_path}"
            record.tap(Hop.FROM_CLIENT, Head(line, tuple(request.headers.items())))
        status = CLIENT_GONE
        try:
            exchange = HttpExchange(request, record, self.redactor)
            response = await self._answer_or_fail(exchange)
            status = response.status
            if not response.prepared:
                response.headers.update(id_headers(record.request_id))
                if self._dashboard_for(request):
                    response.headers.update(PAGE_HEADERS)
                if record.tap is not None and isinstance(response, Response):
                    record.tap(Hop.TO_CLIENT, body_bytes(response))
            if record.tap is not None:
                head = Head(str(status), tuple(response.headers.items()))
                record.tap(Hop.TO_CLIENT, head)
            return response
        finally:
            record.finish(status)
            self.observers.finish(record)
            self.requests -= 1
            if not self.requests:
                self._schedule_memory_release()

    def _schedule_memory_release(self) -> None:
        """Wake those who wait for idleness, and release memory if it lasts."""
        self._idle.set()
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        loop = asyncio.get_running_loop()
        self._memory_timer = loop.call_later(self.rest_seconds[0], self._release_memory)

    def _release_memory(self) -> None:
        """Return free memory to the system, unless a request is in progress again."""
        if not self.requests:
            loop, (short, long) = asyncio.get_running_loop(), self.rest_seconds
            loop.run_in_executor(None, give_back_free_memory)
            self._memory_timer = loop.call_later(long - short, self._release_caches)

    def _release_caches(self) -> None:
        if not self.requests:
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, self._shrink_memory)

    def _shrink_memory(self) -> None:
        self._shrink()
        give_back_free_memory()

    async def _answer_or_fail(self, exchange: HttpExchange) -> StreamResponse:
        try:
            return await self._answer(exchange)
        except ByokError as error:
            failure = error
            if not exchange.record.trusted:
                self.guard.count_refused(error)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            failure = explain_failure(error, exchange.request_id)
        return exchange.write_error(failure)

    async def _answer(self, exchange: HttpExchange) -> StreamResponse:
        """Check the head and answer; `http/guard.py` explains the order of checks."""
        request = exchange.request
        dashboard = self._dashboard_for(request)
        self.guard.check_origin(request, own_page=dashboard is not None)
        if request.raw_path in _HEALTH and request.method in ("GET", "HEAD"):
            exchange.record.endpoint = request.raw_path
            return self._health()
        if is_visit(request):
            exchange.record.endpoint = PREFIX + "/"
            return Response(
                status=302, headers={**BASE_HEADERS, "Location": PREFIX + "/"}
            )
        if request.raw_path == challenge.PATH and request.method == "POST":
            exchange.record.endpoint = request.raw_path
            return await self._answer_challenge(request)
        if asks_for_worker(request):
            exchange.record.endpoint = "/ui/"
            return end_worker()
        if dashboard is not None:
            return await dashboard.answer(exchange)
        if self.features and (page := self.features.page_at(request.raw_path)):
            exchange.record.endpoint = page.path
            return await self._write_page(page, self.features.numbers, exchange)
        by_api_key = takes_api_key(request.raw_path)
        exchange.requester = self.guard.check_token(
            request.headers, takes_api_key=by_api_key
        )
        exchange.record.trusted = True
        note_token(request)
        await self._endpoints_ready.wait()
        if self._endpoints is None:
            raise shutting_down()
        return await self._endpoints(exchange)

    async def _write_page(
        self, page: OwnPage, numbers: Sequence[Number], exchange: HttpExchange
    ) -> Response:
        """Answer GET at the path of a feature, such as /metrics, with its own token.

        Raises:
            NotAllowed: 401.
        """
        request = exchange.request
        if not page.token(request.headers.get("Authorization", "")):
            raise NotAllowed(
                "The token is missing or wrong.",
                code="unauthorized",
                hint=page.token_hint,
                status=401,
            )
        exchange.record.trusted = True
        note_token(request)
        if request.method not in ("GET", "HEAD"):
            return exchange.refuse_method("GET")
        headers = {**BASE_HEADERS, "Content-Type": page.content_type}
        return Response(body=await page.write(numbers), headers=headers)

    def _dashboard_for(self, request: BaseRequest) -> DashboardEndpoint | None:
        """Return the dashboard if it serves the path."""
        dashboard = self.dashboard
        return dashboard if dashboard and dashboard.serves(request.raw_path) else None

    def _health(self) -> Response:
        if self.gate.stopping:
            return json_response({"status": "stopping"}, 503)
        return json_response({"status": "ok"})

    async def _answer_challenge(self, request: BaseRequest) -> Response:
        """Prove to another process of this user that this is its daemon."""
        limits = challenge.MAX_BODY_BYTES, self.timing.body_gap, self.timing.challenge
        return json_response(
            self.prove(await read_object(self.guard, request, *limits))
        )


class AccessLog:
    """Observer that writes one line for each request; it returns no tap.

    Requests without the token and those of byok's own commands are logged at the level
    `debug` only: neither may fill the log. Lines are written in batches, which takes a
    quarter of the time of writing each between two requests.
    """

    def __init__(self) -> None:
        self._finished: list[RequestRecord] = []

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing; a request is logged when it ends."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Add the request to the batch that is written soon."""
        if not self._finished:
            asyncio.get_running_loop().call_later(_BATCH_SECONDS, self.write)
        self._finished.append(record)

    def write(self) -> None:
        """Write the lines of the requests that have ended since the last batch."""
        finished, self._finished = self._finished, []
        for is_of_client, records in groupby(finished, lambda r: r.is_of_client):
            level = logging.INFO if is_of_client else logging.DEBUG
            if _access.isEnabledFor(level):
                _access.log(level, LogLines(map(access_line, records)))


def access_line(record: RequestRecord) -> str:
    """Return the line of a request: facts separated by spaces, no content."""
    facts = [
        record.method if record.method.isalpha() else "?",
        record.endpoint,
        str(record.status),
        f"{record.seconds * 1000:.0f} ms",
        record.request_id,
    ]
    if record.model:
        facts += _answer_facts(record)
    if record.loop:
        facts.append(f"loop={record.loop}")
    return " ".join(facts)


def _answer_facts(record: RequestRecord) -> list[str]:
    facts = [record.model_id[:_MAX_MODEL_CHARS]]
    if record.first_byte is not None:
        facts.append(f"first={record.first_byte * 1000:.0f}ms")
    if usage := record.total_usage:
        facts.append(f"in={usage.input_tokens} cached={usage.cache_read_tokens}")
        facts.append(f"out={usage.output_tokens}")
    if record.prompt:
        facts.append(f"prompt={record.prompt.replace(' ', '-')}")
    if record.prompt_change:
        facts.append(f"changed={record.prompt_change.replace(', byte ', '+')}")
    if record.attempts > 1:
        facts.append(f"attempts={record.attempts}")
    if record.retried:
        facts.append(f"retried={','.join(record.retried)}")
    if record.repairs:
        facts.append(f"repairs={record.repairs}")
    if record.dropped_calls:
        facts.append(f"dropped_calls={record.dropped_calls}")
    if record.error:
        facts.append(f"error={record.error}")
    return facts
