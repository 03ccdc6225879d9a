"""Stop asking an upstream that cannot be reached, and look again after a pause."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from byok.errors import NotReady

FAILURES = 5
WINDOW_SECONDS = 30.0


class Breaker:
    """Opens after five failed connections within thirty seconds, for `pause` seconds.

    Then one request is let through; its fate decides.
    """

    def __init__(
        self, pause: float = 30.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._until: float | None = None  # None while requests pass
        self._undecided = False  # what the one that was let through tells

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Let a request pass; it tells how it fared by `connected` or `failed`.

        One that ends without a word, such as one whose client left, decides nothing:
        the next one is let through.

        Raises:
            NotReady: the upstream is left alone for the moment.
        """
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
        now = self._clock()
        if now < self._until:
            raise NotReady(
                "it could not be reached several times in a row; the next attempt is "
                f"made in {self._until - now:.0f} s.",
                code="upstream_down",
            )
        self._until = now + self._pause  # for all but this one

    def connected(self) -> None:
        """Note that the upstream answered."""
        self._failures.clear()
        self._until = None
        self._undecided = False

    def failed(self) -> None:
        """Note that no connection came about."""
        now = self._clock()
        self._undecided = False
        self._failures.append(now)
        full = len(self._failures) == FAILURES
        if self._until is not None or (
            full and now - self._failures[0] <= WINDOW_SECONDS
        ):
            self._until = now + self._pause
