"""Stop asking an upstream that cannot be reached, and look again after a pause."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from byok.errors import NotReady, UpstreamError

FAILURES = 5
WINDOW_SECONDS = 30.0
_SHORT = 2.0  # seconds that a request waits rather than being refused


class Breaker:
    """Circuit breaker: five failed connections in 30 s open it for `pause` seconds.

    Then one request is let through; its fate decides.
    """

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
        self._cause = self._hint = ""  # what is told of the last failure
        self._until: float | None = None  # None while requests pass
        self._undecided = False  # what the one that was let through tells

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Let a request pass, to end with `record_success` or `record_failure`.

        One that ends without a word, such as one whose client left, decides nothing:
        the next one is let through.

        Raises:
            NotReady: the upstream is left alone for the moment.
        """
        while 0 < (left := self._seconds_left()) < _SHORT:
            await self._sleep(left)
        self.check()
        mine = self._undecided = self._until is not None
        try:
            yield
        finally:
            if mine and self._undecided:
                self._until = self._clock()

    def check(self) -> None:
        """Let a request pass.

        Raises:
            NotReady: the upstream is left alone for the moment.
        """
        if self._until is None:
            return
        if (left := self._seconds_left()) > 0:
            raise NotReady(
                f"{self._cause} After several failures in a row the next attempt is "
                f"made in {math.ceil(left)} s.",
                code="upstream_down",
                hint=self._hint,
                upstream=self._upstream,
            )
        self._until = self._clock() + self._pause  # for all but this one

    def _seconds_left(self) -> float:
        return 0.0 if self._until is None else self._until - self._clock()

    def record_success(self) -> None:
        """Note that the upstream answered."""
        self._failures.clear()
        self._until = None
        self._undecided = False

    def record_failure(self, cause: UpstreamError) -> None:
        """Note that no connection came about."""
        now = self._clock()
        self._undecided = False
        self._cause, self._hint = cause.message, cause.hint
        self._failures.append(now)
        full = len(self._failures) == FAILURES
        if self._until is not None or (
            full and now - self._failures[0] <= WINDOW_SECONDS
        ):
            self._until = now + self._pause
