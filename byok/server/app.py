"""Entry point of every request: access checks, /health, record, access log's lines.

The endpoints are loaded while the port is open already: a request that comes before
waits for them, and /health does not.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from msgspec import Struct, field

from byok.core.daemon import challenge
from byok.core.daemon.logs import LogLines
from byok.core.errors import ByokError, NotAllowed
from byok.core.observer import Observers
from byok.core.platform.process import give_back_free_memory
from byok.core.record import CLIENT_GONE, Head, Hop, RequestRecord, begin_record
from byok.core.redact import Redactor
from byok.features.base import OwnPage
from byok.features.running import Features
from byok.server.dashboard.endpoint import (
    PAGE_HEADERS,
    PREFIX,
    DashboardEndpoint,
    asks_for_worker,
    end_worker,
    is_visit,
)
from byok.server.http.body import parse_request, read_body
from byok.server.http.deadlines import Timing
from byok.server.http.gate import Gate, shutting_down
from byok.server.http.guard import Guard, client_of
from byok.server.http.protocol import note_token
from byok.server.http.reply import (
    COMMON,
    HttpExchange,
    body_bytes,
    explain_failure,
    id_headers,
    json_response,
)
from byok.server.openai_api import takes_api_key

if TYPE_CHECKING:
    from byok.core.chat import Json


_HEALTH = frozenset({"/health", "/healthz"})


Handler: TypeAlias = Callable[[HttpExchange], Awaitable[StreamResponse]]


class App(Struct, eq=False):
    """The handler of every request; `requests` are those in progress.

    `prove` answers a challenge. Times are in seconds; `rest_seconds` are those after
    the last request, when free memory is given back, and what is kept for speed.
    """

    guard: Guard
    gate: Gate
    redactor: Redactor
    observers: Observers
    prove: Callable[["Json"], "Json"]
    pages: "FeaturePages | None" = None
    dashboard: DashboardEndpoint | None = None
    timing: Timing = Timing()
    rest_seconds: tuple[float, float] = (5.0, 60.0)
    requests: int = 0
    _endpoints: Handler | None = None
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _idle: asyncio.Event = field(default_factory=asyncio.Event)
    _shrink: Callable[[], None] = lambda: None
    _giving_back: asyncio.TimerHandle | None = None

    def open(self, endpoints: Handler, shrink: Callable[[], None]) -> None:
        """Set the handler; requests that waited for it go on.

        After a minute without requests `shrink`, in a thread, lets go of memory.
        """
        self._endpoints = endpoints
        self._shrink = shrink
        self._settled.set()

    def close(self) -> None:
        """Release waiting requests with an error: the daemon stops."""
        if self._giving_back is not None:
            self._giving_back.cancel()
        self._settled.set()

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
                self._rest()

    def _rest(self) -> None:
        """Note that no request is in progress; give memory back if that lasts."""
        self._idle.set()
        if self._giving_back is not None:
            self._giving_back.cancel()
        loop = asyncio.get_running_loop()
        self._giving_back = loop.call_later(self.rest_seconds[0], self._give_back)

    def _give_back(self) -> None:
        """Give memory back where still nobody waits; else after the next requests."""
        if not self.requests:
            loop, (short, long) = asyncio.get_running_loop(), self.rest_seconds
            loop.run_in_executor(None, give_back_free_memory)
            self._giving_back = loop.call_later(long - short, self._give_back_more)

    def _give_back_more(self) -> None:
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
        """Check the head and answer, in the order given in `http/guard.py`."""
        request = exchange.request
        dashboard = self._dashboard_for(request)
        self.guard.check_origin(request, own_page=dashboard is not None)
        if request.raw_path in _HEALTH and request.method in ("GET", "HEAD"):
            exchange.record.endpoint = request.raw_path
            return self._health()
        if is_visit(request):
            exchange.record.endpoint = PREFIX + "/"
            return Response(status=302, headers={**COMMON, "Location": PREFIX + "/"})
        if request.raw_path == challenge.PATH and request.method == "POST":
            exchange.record.endpoint = request.raw_path
            return await self._answer_challenge(request)
        if asks_for_worker(request):
            exchange.record.endpoint = "/ui/"
            return end_worker()
        if dashboard is not None:
            return await dashboard.answer(exchange)
        if self.pages and (page := self.pages.find(request.raw_path)):
            return await self.pages.answer(page, exchange)
        by_api_key = takes_api_key(request.raw_path)
        exchange.requester = self.guard.check_token(
            request.headers, takes_api_key=by_api_key
        )
        exchange.record.trusted = True
        note_token(request)
        await self._settled.wait()
        if self._endpoints is None:
            raise shutting_down()
        return await self._endpoints(exchange)

    def _dashboard_for(self, request: BaseRequest) -> DashboardEndpoint | None:
        """Return the dashboard if the path is below its own."""
        found = self.dashboard
        return found if found and found.serves(request.raw_path) else None

    def _health(self) -> Response:
        if self.gate.stopping:
            return json_response({"status": "stopping"}, 503)
        return json_response({"status": "ok"})

    async def _answer_challenge(self, request: BaseRequest) -> Response:
        """Prove to another process of this user that this is its daemon."""
        self.guard.check_length(request, challenge.MAX_BODY)
        self.guard.check_content(request.headers)
        gap, in_all = self.timing.body_gap, self.timing.challenge
        raw = await read_body(request, challenge.MAX_BODY, gap, in_all)
        return json_response(self.prove(parse_request(raw)))


# One line in the log for each request: what was asked, the status, what it took.


_access = logging.getLogger("byok.access")
_LONGEST = 100  # characters of a model's id
_GATHER = 0.05  # seconds


class AccessLog:
    """Observer that writes the access log; it asks for no bytes.

    What came without the token, and what byok's own commands ask, is for `debug` only:
    neither may fill the log. The lines of a moment are written together, which takes a
    quarter of the time that each would take between two requests.
    """

    def __init__(self) -> None:
        self._ended: list[RequestRecord] = []

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing until the request ends."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Write the line of a request soon."""
        if not self._ended:
            asyncio.get_running_loop().call_later(_GATHER, self.write)
        self._ended.append(record)

    def write(self) -> None:
        """Write the lines of the requests that have ended."""
        ended, self._ended = self._ended, []
        for is_of_client, records in groupby(ended, lambda r: r.is_of_client):
            level = logging.INFO if is_of_client else logging.DEBUG
            if _access.isEnabledFor(level):
                _access.log(level, LogLines(map(access_line, records)))


def access_line(record: RequestRecord) -> str:
    """Write a request as one line: facts separated by spaces, no content."""
    facts = [
        record.method if record.method.isalpha() else "?",
        record.endpoint,
        str(record.status),
        f"{record.seconds * 1000:.0f} ms",
        record.request_id,
    ]
    if record.model:
        facts += _facts_of_answer(record)
    if record.loop:
        facts.append(f"loop={record.loop}")
    return " ".join(facts)


def _facts_of_answer(record: RequestRecord) -> list[str]:
    facts = [record.model_id[:_LONGEST]]
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


# Pages that a feature has at a path of its own, such as /metrics.


class FeaturePages:
    """Answers GET at the paths of features; a page has a token of its own."""

    def __init__(self, features: Features) -> None:
        self._features = features

    def find(self, raw_path: str) -> OwnPage | None:
        """Return the page that a feature has there, if any."""
        return self._features.page_at(raw_path.partition("?")[0])

    async def answer(self, page: OwnPage, exchange: HttpExchange) -> Response:
        """Check the token, and write the page.

        Raises:
            NotAllowed: 401.
        """
        request, record = exchange.request, exchange.record
        record.endpoint = page.path
        if not page.token(request.headers.get("Authorization", "")):
            raise NotAllowed(
                "The token is missing or wrong.",
                code="unauthorized",
                hint=page.token_hint,
                status=401,
            )
        record.trusted = True
        note_token(request)
        if request.method not in ("GET", "HEAD"):
            return exchange.refuse_method("GET")
        body = await page.write(self._features.numbers)
        return Response(
            body=body, headers={**COMMON, "Content-Type": page.content_type}
        )
