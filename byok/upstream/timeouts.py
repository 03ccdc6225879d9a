"""How long an upstream may take: for its first word, between two, and in all.

The first word of a local model comes after it has read the whole prompt, so local
servers are given more time; many send the head of their answer long before it. Comments
of a stream (": keep waiting") count as a sign of life, but not for ever.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from byok.errors import UpstreamTimeout

NOT_BEGUN = "it did not begin to answer in time."


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a request to an upstream, in seconds.

    `first_byte` is for the head, and for silence until the first event after it; `idle`
    between bytes from then on, `comments_only` between events, `total` for all.
    """

    first_byte: float = 120.0
    idle: float = 90.0
    comments_only: float = 600.0
    total: float = 1800.0

    def with_idle(self, seconds: float) -> Self:
        """Return the same with the user's own longest silence."""
        return replace(
            self,
            first_byte=seconds,
            idle=seconds,
            comments_only=max(seconds, self.comments_only),
            total=max(seconds, self.total),
        )


REMOTE = Timeouts()
LOCAL = Timeouts(first_byte=600.0, idle=300.0, comments_only=1800.0, total=7200.0)


class Watch:
    """Breaks an answer off when it exceeds its limits.

    It looks on by a timer of its own, so that a read costs no more than a note of
    the time. Afterwards `failure` says what was exceeded.
    """

    def __init__(self, patience: Timeouts, abort: Callable[[], None]) -> None:
        self._patience = patience
        self._abort = abort
        self._loop = asyncio.get_running_loop()
        self._began = self._heard = self._told = self._loop.time()
        self._begun = False  # the first event has come
        self._timer: asyncio.TimerHandle | None = None
        self.failure: UpstreamTimeout | None = None

    def __enter__(self) -> Self:
        self._look()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def note_bytes(self, *, told: bool) -> None:
        """Note that bytes came, and whether they told anything."""
        self._heard = self._loop.time()
        if told:
            self._told = self._heard
            if not self._begun and self.failure is None:
                self._begin()

    def _begin(self) -> None:
        """Look anew: another limit counts from now on, which may be shorter."""
        self._begun = True
        if self._timer is not None:
            self._timer.cancel()
        self._look()

    def _look(self) -> None:
        patience, now = self._patience, self._loop.time()
        quiet, silence = NOT_BEGUN, patience.first_byte
        if self._begun:
            quiet = "it fell silent in the middle of its answer."
            silence = patience.idle
        ends = {
            quiet: self._heard + silence,
            "it sent only signs of life for too long.": self._told
            + patience.comments_only,
            "its answer took too long.": self._began + patience.total,
        }
        reason = min(ends, key=ends.__getitem__)
        if ends[reason] > now:
            self._timer = self._loop.call_at(ends[reason], self._look)
            return
        self.failure = too_slow(reason)
        self._abort()


def too_slow(reason: str) -> UpstreamTimeout:
    """Return the error for a limit that was exceeded."""
    return UpstreamTimeout(reason, hint="A higher timeout for this upstream may help.")
