"""Timeouts of an upstream's answer, and the watch that aborts what exceeds them.

A local model answers only after it has read the whole prompt, so local servers get more
time; many send the head of their answer long before. So does a model that reasons: many
APIs send nothing while it thinks. Comments of a stream (": keep waiting") keep a
connection from being idle, but not for ever.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from byok.core.errors import UpstreamTimeout

NOT_BEGUN = "it did not begin to answer in time."
_IDLE = "it fell silent in the middle of its answer."
_ONLY_COMMENTS = "it sent only signs of life for too long."
_TOO_LONG = "its answer took too long."


class Timeouts(Struct, frozen=True):
    """The timeouts of a request to an upstream, in seconds.

    Attributes:
        connect: to establish a connection.
        first_byte: to the head of an answer, and from there to its first event.
        idle: between two reads after the first event.
        comments_only: between two events, while only comments come.
        total: for the whole answer.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 90.0
    comments_only: float = 600.0
    total: float = 1800.0

    def with_idle(self, seconds: float) -> Self:
        """Return the timeouts with the idle time that the user set, in seconds."""
        return replace(
            self,
            first_byte=seconds,
            idle=seconds,
            comments_only=max(seconds, self.comments_only),
            total=max(seconds, self.total),
        )


REMOTE = Timeouts()
REASONING = Timeouts(first_byte=600.0, idle=300.0)
LOCAL = Timeouts(first_byte=600.0, idle=300.0, comments_only=1800.0, total=7200.0)


class Watch:
    """Aborts an answer that exceeds one of its timeouts; `failure` says which.

    It checks all timeouts with one timer, so that a read only stores the time.
    """

    def __init__(self, timeouts: Timeouts, abort: Callable[[], None]) -> None:
        self._timeouts = timeouts
        self._abort = abort
        self._loop = asyncio.get_running_loop()
        self._began = self._last_read = self._last_event = self._loop.time()
        self._has_begun = False  # the first event has arrived
        self._timer: asyncio.TimerHandle | None = None
        self.failure: UpstreamTimeout | None = None

    def __enter__(self) -> Self:
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def note_bytes(self, *, has_event: bool) -> None:
        """Record the time of a read, and whether it completed an event."""
        self._last_read = self._loop.time()
        if has_event:
            self._last_event = self._last_read
            self._has_begun = True

    def _check(self) -> None:
        timeouts, now = self._timeouts, self._loop.time()
        reason, idle = NOT_BEGUN, timeouts.first_byte
        if self._has_begun:
            reason, idle = _IDLE, timeouts.idle
        deadlines = {
            reason: self._last_read + idle,
            _ONLY_COMMENTS: self._last_event + timeouts.comments_only,
            _TOO_LONG: self._began + timeouts.total,
        }
        reason = min(deadlines, key=deadlines.__getitem__)
        if deadlines[reason] > now:
            # `idle` applies as soon as the answer begins, so check that soon again.
            next_check = min(deadlines[reason], now + timeouts.idle)
            self._timer = self._loop.call_at(next_check, self._check)
            return
        self.failure = too_slow(reason)
        self._abort()


def too_slow(reason: str) -> UpstreamTimeout:
    """Return the error for a timeout."""
    return UpstreamTimeout(reason, hint="A higher timeout for this upstream may help.")
