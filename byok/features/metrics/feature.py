"""Metrics for Prometheus at /metrics, with a token of their own; off unless set."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from byok.core.daemon.token import TokenCheck
from byok.core.errors import ByokError
from byok.core.record import RequestRecord
from byok.features.base import Feature, Number, OwnPage, Site, Supplies
from byok.features.metrics.counts import LAG_SECONDS, Histogram, RequestMetrics
from byok.features.metrics.settings import MetricsSettings

if TYPE_CHECKING:
    from byok.core.code_query import IndexStatus

_PATH = "/metrics"
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_INDEX_SECONDS = 2.0  # until a page is written without the index
_KEEP_SECONDS = 10.0  # for which the index is not asked again: it counts its rows
_LAG_EVERY = 1.0  # seconds


class Metrics(Feature):
    """Counts requests while it is on, and writes the page."""

    def __init__(
        self, site: Site, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._site = site
        self._clock = clock
        self._requests = RequestMetrics(site.redactor)
        self._lag = LoopLag()
        self._started = time.time()
        self._token: TokenCheck | None = None
        self._ask_index: Callable[[], Awaitable[IndexStatus]] | None = None
        self._index: IndexStatus | None = None
        self._index_until = float("-inf")

    def configure(self, supplies: Supplies, /) -> None:
        """Count and answer from now on, or not; the token file is made if needed.

        Raises:
            ConfigError: the token file is not private.
        """
        on = supplies.settings.section(MetricsSettings).enabled
        if on and self._token is None:
            file, hide = self._site.paths.metrics_token, self._site.redactor.add
            self._token = TokenCheck(file, hide, required=False)
        self._requests.on, self._requests.price_of = on, supplies.price_of
        self._ask_index = supplies.ask_index
        (self._lag.start if on else self._lag.stop)()

    def request_started(self, record: RequestRecord, /) -> None:
        """Count a request that is open."""
        self._requests.start(record)

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count the facts of a request."""
        self._requests.finish(record)

    @property
    def page(self) -> OwnPage | None:
        """The page, while it is on; else the path is unknown to byok."""
        if not self._requests.on or self._token is None:
            return None
        hint = "byok token --metrics prints the one for /metrics."
        return OwnPage(_PATH, _CONTENT_TYPE, self._token, hint, self._write)

    def stop(self) -> None:
        """Look at the loop no more."""
        self._lag.stop()

    async def _write(self, numbers: Sequence[Number]) -> bytes:
        from byok.features.metrics.page import Moment, write_page  # by those who look

        moment = Moment(
            self._site.load.open,
            self._site.load.waiting,
            numbers,
            self._lag.seen,
            await self._index_status(),
        )
        return write_page(self._requests, moment, self._started)

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


class LoopLag:
    """The lag of the event loop, which delays every open stream.

    It samples the loop once a second between `start` and `stop`.
    """

    def __init__(self, every: float = _LAG_EVERY) -> None:
        self._every = every
        self._next: asyncio.TimerHandle | None = None
        self.seen = Histogram(LAG_SECONDS)

    def start(self) -> None:
        """Start sampling; to be called on the loop."""
        if self._next is None:
            self._wait(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop sampling."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + self._every
        self._next = loop.call_at(due, self._look, loop, due)

    def _look(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.seen.add(max(0.0, loop.time() - due))
        self._wait(loop)
