"""Whose request is next: questions come before code, and nobody's after a failure."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from byok.errors import ByokError, NotReady, UpstreamRefused

_PATIENCE = 2.0  # seconds that code waits for questions, so that they cannot stop it
_FIRST_REST, _LONGEST_REST = 1.0, 60.0
# A wrong key or name is not put right by itself.
_FIRST_LONG_REST, _LONGEST_LONG_REST = 10.0, 300.0
_LONGEST_WISH = 600.0  # of an upstream


class Priority:
    """One request for code at a time, and only while no question is open."""

    def __init__(self, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._filling = asyncio.Lock()
        self._questions = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @asynccontextmanager
    async def question(self) -> AsyncIterator[None]:
        """Ask inside; code waits meanwhile."""
        self._questions += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._quiet.set()

    @asynccontextmanager
    async def filling(self) -> AsyncIterator[None]:
        """Send code inside, once questions are answered; they are waited for 2 s."""
        async with self._filling:
            with suppress(TimeoutError):  # there may always be one more question
                async with asyncio.timeout(self._patience):
                    await self._quiet.wait()
            yield


class Rest:
    """How long a model is left alone after failures in a row; longer each time."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._luck = luck
        self._failures = 0
        self._until = float("-inf")
        self._cause: ByokError | None = None

    @property
    def seconds(self) -> float:
        """How long the rest lasts from now on; 0 where there is none."""
        return max(0.0, self._until - self._clock())

    def begin(self, cause: ByokError) -> None:
        """Rest after a failure, at least as long as the upstream asks for."""
        first, longest = _FIRST_REST, _LONGEST_REST
        if not cause.retryable:
            first, longest = _FIRST_LONG_REST, _LONGEST_LONG_REST
        doubled = first * 2.0 ** min(self._failures, 16)
        seconds = min(longest, doubled) * (1 + self._luck()) / 2
        wish = cause.retry_after if isinstance(cause, UpstreamRefused) else None
        self._until = self._clock() + max(seconds, min(wish or 0.0, _LONGEST_WISH))
        self._failures += 1
        self._cause = cause

    def end(self) -> None:
        """Forget the failures: the model answered."""
        self._failures, self._until, self._cause = 0, float("-inf"), None

    async def wait(self) -> None:
        """Wait until the rest is over."""
        while (seconds := self.seconds) > 0:
            await self._sleep(seconds)

    def check(self) -> None:
        """Check that the model may be asked now.

        Raises:
            NotReady: it rests; the message is that of its last failure.
        """
        if self._cause is not None and self.seconds > 0:
            raise NotReady(
                self._cause.message,
                upstream=self._cause.upstream,
                hint=self._cause.hint,
                code="embedder_rests",
            )
