"""How long a failing server is left alone, and what the user is told meanwhile."""

import logging
import random
import time
from collections.abc import Callable

_log = logging.getLogger(__name__)

_FIRST, _LONGEST = 5.0, 600.0  # seconds


class Pause:
    """Waits twice as long after each failure, 10 minutes at most.

    The same trouble is logged once, until a success. Waits differ by up to a half, so
    that the members of a team do not come back all at once.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._draw = draw
        self._until = 0.0
        self._next = _FIRST
        self.note = ""

    @property
    def seconds(self) -> float:
        """How long it lasts from now on; 0 if the server may be asked."""
        return max(0.0, self._until - self._clock()) if self.note else 0.0

    def begin(self, note: str) -> None:
        """Leave the server alone for a while; `note` says why, in one sentence."""
        if note != self.note:
            _log.warning("the team's index is not used: %s", note)
        self.note = note
        self._until = self._clock() + self._next * (0.5 + self._draw() / 2)
        self._next = min(2 * self._next, _LONGEST)

    def end(self) -> None:
        """Note that the server answered as it should."""
        if self.note:
            _log.info("the team's index is used again")
        self.note = ""
        self._next = _FIRST
