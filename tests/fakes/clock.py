"""Clocks of tests: one that a test moves, a loop whose time passes at once, a check
by the clock that work takes linear time.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: what would be waited for is over."""

    now = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += max(timeout or 0.0, 0.0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._waiting = _Selector()
        super().__init__(self._waiting)

    def time(self) -> float:
        return self._waiting.now


def run_at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run what only waits for timers; their time passes at once, and exactly."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


_TRIES = 5


def check_linear(run: Callable[[int], object], size: int) -> None:
    """Check that twice the input takes about twice the time.

    The machine may be busy, so only a clear excess that is seen again counts.
    """

    def seconds(size: int) -> float:
        started = time.process_time()
        run(size)
        return time.process_time() - started

    for _ in range(_TRIES):
        once, twice = seconds(size), seconds(2 * size)
        if twice < 3 * once + 0.05:
            return
    raise AssertionError(f"not linear: {once:.3f} s, twice the input {twice:.3f} s")
