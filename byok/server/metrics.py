"""`GET /metrics` for Prometheus, with a token of its own; off unless it is set."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from aiohttp.web import BaseRequest, Response

from byok.daemon.token import TokenCheck
from byok.errors import BadRequest, ByokError, NotAllowed
from byok.journal.cost import PriceOf
from byok.journal.journal import Journal
from byok.metrics.loop_lag import LoopLag
from byok.metrics.request_metrics import RequestMetrics
from byok.redact import Redactor
from byok.server.http.exchange import HttpExchange
from byok.server.http.gate import Gate
from byok.server.http.protocol import note_token
from byok.server.http.reply import COMMON

if TYPE_CHECKING:
    from byok.code_query import IndexStatus

PATH = "/metrics"
_INDEX_SECONDS = 2.0  # until a page is written without the index
_KEEP_SECONDS = 10.0  # for which the index is not asked again: it counts its rows

AskIndex: TypeAlias = Callable[[], Awaitable["IndexStatus"]]


class MetricsEndpoint:
    """Answers `GET /metrics` while it is on; `requests` counts as an observer."""

    def __init__(
        self,
        token_file: Path,
        redactor: Redactor,
        gate: Gate,
        journal: Journal,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token_file = token_file
        self._redactor = redactor
        self._gate = gate
        self._journal = journal
        self._clock = clock
        self.requests = RequestMetrics(redactor)
        self._lag = LoopLag()
        self._started = time.time()
        self._token: TokenCheck | None = None
        self._ask_index: AskIndex | None = None
        self._index: IndexStatus | None = None
        self._index_until = float("-inf")

    def configure(self, *, on: bool, price_of: PriceOf, ask_index: AskIndex) -> None:
        """Count and answer from now on, or not; the token file is made if needed.

        Raises:
            ConfigError: the token file is not private.
        """
        if on and self._token is None:
            self._token = TokenCheck(
                self._token_file, self._redactor.add, required=False
            )
        self.requests.on, self.requests.price_of = on, price_of
        self._ask_index = ask_index
        (self._lag.start if on else self._lag.stop)()

    def serves(self, raw_path: str) -> bool:
        """Tell whether this answers a path; while off, the path is unknown to byok."""
        return self.requests.on and raw_path.partition("?")[0] == PATH

    async def answer(self, exchange: HttpExchange) -> Response:
        """Check the token, and write the page.

        Raises:
            NotAllowed: 401.
        """
        request, record = exchange.request, exchange.record
        record.endpoint = PATH
        self._check(request)
        record.trusted = True
        note_token(request)
        if request.method not in ("GET", "HEAD"):
            error = BadRequest("Use GET.", code="method_not_allowed", status=405)
            refused = exchange.write_error(error)
            refused.headers["Allow"] = "GET"
            refused.force_close()  # its body stays unread
            return refused
        from byok.metrics.exposition import CONTENT_TYPE

        page = await self._write_page()
        return Response(body=page, headers={**COMMON, "Content-Type": CONTENT_TYPE})

    def close(self) -> None:
        """Look at the loop no more."""
        self._lag.stop()

    def _check(self, request: BaseRequest) -> None:
        shown = request.headers.get("Authorization", "")
        if self._token is None or not self._token(shown):
            raise NotAllowed(
                "The token is missing or wrong.",
                code="unauthorized",
                hint="byok token --metrics prints the one for /metrics.",
                status=401,
            )

    async def _write_page(self) -> bytes:
        from byok.metrics.page import Moment, write_page  # by those who look

        moment = Moment(
            self._gate.open,
            self._gate.waiting,
            self._journal.lost,
            self._lag.seen,
            await self._index_status(),
        )
        return write_page(self.requests, moment, self._started)

    async def _index_status(self) -> "IndexStatus | None":
        """Return the last status of the index, None if it does not tell one in time."""
        now = self._clock()
        if self._ask_index is not None and now >= self._index_until:
            self._index_until = now + _KEEP_SECONDS
            try:
                async with asyncio.timeout(_INDEX_SECONDS):
                    self._index = await self._ask_index()
            except (ByokError, TimeoutError):
                self._index = None  # the page says that it is not up
        return self._index
