"""Circuit breaker: an upstream that cannot be reached is not asked for a while.

Closed, all requests pass. After five failed connections within thirty seconds it opens:
requests are refused at once for `pause` seconds. Then it is half open: one request, the
probe, passes, and its outcome closes it or opens it again. Others wait for the outcome
for two seconds.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from byok.core.errors import NotReady, UpstreamError

FAILURES = 5
WINDOW_SECONDS = 30.0
_MAX_WAIT = 2.0  # seconds that a request waits for the probe instead of being refused


class CircuitBreaker:
    """Refuses requests for `pause` seconds after five failed connections in 30 s."""

    def __init__(
        self,
        pause: float = 30.0,
        *,
        upstream: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._pause = pause
        self._upstream = upstream
        self._clock = clock
        self._sleep = sleep
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._cause = self._hint = ""  # of the last failure, for users
        self._until: float | None = None  # when it is half open; None while closed
        self._is_probing = False  # the probe was sent and has no outcome yet
        self._probed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Whether all requests pass."""
        return self._until is None

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Send a request in this context; call `record_success` or `record_failure`.

        A probe that ends without either, because its client left, decides nothing: the
        next request is the probe.

        Raises:
            NotReady: the breaker is open.
        """
        while 0 < (remaining := self.seconds_left()) < _MAX_WAIT:
            await self._sleep(remaining)
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_WAIT):
                while self._is_probing:
                    await self._probed.wait()
        self.check()
        is_probe = self._is_probing = self._until is not None
        self._probed.clear()
        try:
            yield
        finally:
            if is_probe and self._is_probing:
                self._until = self._clock()
                self._end_probe()

    def check(self) -> None:
        """Check that a request may be sent; while half open, it becomes the probe.

        Raises:
            NotReady: the breaker is open.
        """
        if self._until is None:
            return
        if (remaining := self.seconds_left()) > 0:
            raise NotReady(
                f"{self._cause} After several failures in a row the next attempt is "
                f"made in {math.ceil(remaining)} s.",
                code="upstream_down",
                hint=self._hint,
                upstream=self._upstream,
            )
        self._until = self._clock() + self._pause  # open for all but the probe

    def seconds_left(self) -> float:
        """Return for how long it stays open; 0 or less if a request may be sent."""
        return 0.0 if self._until is None else self._until - self._clock()

    def record_success(self) -> None:
        """Close: the upstream answered."""
        self._failures.clear()
        self._until = None
        self._end_probe()

    def record_failure(self, cause: UpstreamError) -> None:
        """Count a failed connection; open after too many of them."""
        now = self._clock()
        self._end_probe()
        self._cause, self._hint = cause.message, cause.hint
        self._failures.append(now)
        is_full = len(self._failures) == FAILURES
        if self._until is not None or (
            is_full and now - self._failures[0] <= WINDOW_SECONDS
        ):
            self._until = now + self._pause

    def _end_probe(self) -> None:
        self._is_probing = False
        self._probed.set()
