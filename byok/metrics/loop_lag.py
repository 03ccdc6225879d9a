"""The lag of the event loop, which delays every open stream."""

import asyncio

from byok.metrics.histogram import LAG_SECONDS, Histogram

_EVERY = 1.0  # seconds


class LoopLag:
    """Samples the loop once a second between `start` and `stop`."""

    def __init__(self, every: float = _EVERY) -> None:
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
