"""When a model of the user's is left alone: after a failure, and longer each time."""

import logging
import time
from collections.abc import Callable

from byok.errors import ByokError, ConfigError, KeyMissing

_log = logging.getLogger(__name__)
_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
_MOST_DOUBLED = 9


class ModelRest:
    """Keeps searches from waiting in vain for a model.

    `without` says in the log what happens while it is not asked, such as "files keep
    their order".
    """

    def __init__(
        self, without: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._without = without
        self._clock = clock
        self._asked_again = float("-inf")  # when
        self._failures = 0  # one after the other
        self._was_told = False  # that it may not be asked

    @property
    def is_over(self) -> bool:
        """Whether the model may be asked."""
        return self._clock() >= self._asked_again

    def note_answer(self) -> None:
        """Note that the model gave a usable answer."""
        self._failures = 0

    def note_failure(self, error: ByokError) -> None:
        """Begin a rest, but not if the model may only not be asked here.

        Its upstream may be one that the chats of another window go to.
        """
        if isinstance(error, ConfigError) and not isinstance(error, KeyMissing):
            if not self._was_told:
                _log.warning("%s: %s", self._without, error.log_text)
            self._was_told = True
            return
        seconds = min(_PAUSE * 2 ** min(self._failures, _MOST_DOUBLED), _LONGEST_PAUSE)
        self._failures += 1
        self.begin(error.log_text, seconds)

    def begin(self, reason: str, seconds: float = _LONGEST_PAUSE) -> None:
        """Let the model rest for so long."""
        self._asked_again = self._clock() + seconds
        _log.warning(
            "%s; no model is asked for %d s: %s", self._without, seconds, reason
        )
