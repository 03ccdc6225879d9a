"""A clock that a test moves, and a check by the clock that work takes linear time."""

import time
from collections.abc import Callable


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


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
