"""A timer that runs only after something happened."""

import asyncio
from collections.abc import Callable


class Pulse:
    """Acts once, `seconds` after the first note since it last acted.

    `due` is true in between: whoever notes something often asks that first.
    """

    __slots__ = ("_act", "_seconds", "_timer", "due", "on")

    def __init__(self, act: Callable[[], None], seconds: float) -> None:
        self._act = act
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.due = False
        self.on = False  # while off, notes are ignored

    def note(self) -> None:
        """Act soon; to be called on the loop."""
        if self.on and not self.due:
            self.due = True
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._fire)

    def stop(self) -> None:
        """Ignore notes from now on, and act no more."""
        self.on = self.due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self.due, self._timer = False, None
        self._act()
