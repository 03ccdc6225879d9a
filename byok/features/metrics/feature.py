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
from byok.features.settings import MetricsSettings

if TYPE_CHECKING:
    from byok.core.code_query import IndexStatus

_PATH = "/metrics"
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_INDEX_SECONDS = 2.0  # after which a page is written without the index
_CACHE_SECONDS = 10.0  # of the status of the index, which has to count its rows
_SAMPLE_SECONDS = 1.0  # between two samples of the lag


class Metrics(Feature):
    """Counts requests while it is on, and writes the page."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._requests = RequestMetrics(site.redactor)
        self._lag = LoopLag()
        self._started = time.time()
        self._token: TokenCheck | None = None
        self._ask_index: Callable[[], Awaitable[IndexStatus]] | None = None
        self._index: IndexStatus | None = None
        self._index_until = float("-inf")

    def configure(self, supplies: Supplies, /) -> None:
        """Start or stop counting; the token file is created if needed.

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
        """Count an open request."""
        self._requests.start(record)

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count the facts of a request."""
        self._requests.finish(record)

    @property
    def page(self) -> OwnPage | None:
        """The page while it is on; else byok does not have the path."""
        if not self._requests.on or self._token is None:
            return None
        hint = "byok token --metrics prints the one for /metrics."
        return OwnPage(_PATH, _CONTENT_TYPE, self._token, hint, self._write)

    def stop(self) -> None:
        """Stop sampling the event loop."""
        self._lag.stop()

    async def _write(self, numbers: Sequence[Number]) -> bytes:
        from byok.features.metrics.page import Snapshot, write_page  # late: rarely used

        snapshot = Snapshot(
            self._site.load.open,
            self._site.load.waiting,
            numbers,
            self._lag.histogram,
            await self._index_status(),
        )
        return write_page(self._requests, snapshot, self._started)

    async def _index_status(self) -> "IndexStatus | None":
        """Return the last status of the index, None if it does not answer in time."""
        now = time.monotonic()
        if self._ask_index is not None and now >= self._index_until:
            self._index_until = now + _CACHE_SECONDS
            try:
                async with asyncio.timeout(_INDEX_SECONDS):
                    self._index = await self._ask_index()
            except (ByokError, TimeoutError):
                self._index = None  # the page shows that it is not up
        return self._index


class LoopLag:
    """Measures the lag of the event loop, which delays every open stream.

    It samples the loop once a second between `start` and `stop`.
    """

    def __init__(self, every: float = _SAMPLE_SECONDS) -> None:
        self._every = every
        self._next: asyncio.TimerHandle | None = None
        self.histogram = Histogram(LAG_SECONDS)

    def start(self) -> None:
        """Start sampling; to be called on the loop."""
        if self._next is None:
            self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop sampling."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        due = loop.time() + self._every

        def sample() -> None:
            self.histogram.add(max(0.0, loop.time() - due))
            self._schedule(loop)

        self._next = loop.call_at(due, sample)
