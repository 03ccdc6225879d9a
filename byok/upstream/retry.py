"""Retries: which failed requests are repeated, when, and what users read of it.

What passes with time is waited for by the clock, not by a count of tries. The time runs
from the first failure, so that a long answer that failed does not use it up.
"""

import math
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from byok.core.chat import ChatRequest
from byok.core.errors import (
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.core.events import Notice
from byok.dialects.rate_limits import wait_in_words
from byok.upstream.reasons import reason_of

PATIENCE = 300.0  # seconds that people wait, unless the settings say otherwise
_BACKGROUND_PATIENCE = 60.0
_PATIENCE_WITH_OTHERS = 5.0  # an answer now is better than one in five minutes
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 30.0
_SHORT = 3.0  # seconds that a user may take for a slow answer
_FIRST_SPAN = 30.0  # of a notice; each further one covers twice the time

# The errors of servers and of gateways before them; 520 to 523 are Cloudflare's.
_PASSING_STATUS = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 529})
# An error inside a stream has the status 0; what it says may be anything.
_ONCE_STATUS = frozenset({0, 500})
_PASSING_KIND = frozenset(
    {RefusalKind.LOADING, RefusalKind.OVERLOADED, RefusalKind.RATE_LIMIT}
)


_LONGEST_REST = 86_400.0
# Seconds; an account may be paid for meanwhile, and a limit is per minute.
_RESTS = {
    RefusalKind.AUTH: 900.0,
    RefusalKind.QUOTA: 900.0,
    RefusalKind.RATE_LIMIT: 60.0,
}


class _Prospect(Enum):
    """What may come of the same request, sent once more."""

    PASSES = "the failure ends by itself"
    LOST = "another connection may hold"
    SLOW = "it may be faster"
    BROKEN = "another answer may be whole, and is paid for again"
    NONE = "the same failure"


class Patience(Struct, frozen=True):
    """How long a request waits for its upstream: at most `seconds` after a failure.

    Where it `has_others`, another model is asked after a few seconds, and at once where
    this one was too slow. It is a value: a wait gives another one.

    Attributes:
        since: when the first failure was, None before it; in seconds, as all times.
        retries: what was hoped of each retry.
        pause: how long the next attempt waits.
        told_until: until when the user knows of a wait, from `notices` notices.
    """

    seconds: float
    has_others: bool = False
    since: float | None = None
    retries: tuple[_Prospect, ...] = ()
    pause: float = 0.0
    told_until: float = -math.inf
    notices: int = 0

    def plan_wait(
        self, error: UpstreamError, now: float, luck: float
    ) -> "Patience | None":
        """Return the patience with the pause before the next attempt, None to give up.

        The pause is exponential with full jitter (`luck` is a random number from 0 to
        1), or as long as the upstream asks for. A connection that is lost was often
        closed by the server after its last answer: the first retry is at once.
        """
        prospect, since = _prospect(error), now if self.since is None else self.since
        if len(self._retries_for(prospect)) >= self._most_retries(prospect):
            return None
        retries = (*self.retries, prospect)
        planned = replace(self, since=since, retries=retries, pause=0.0)
        number = len(planned._retries_for(prospect))
        had_connection = not isinstance(error, ConnectFailed)
        if prospect is _Prospect.LOST and number == 1 and had_connection:
            return planned
        if not self.seconds:
            return None
        longest = min(_FIRST_BACKOFF * 2.0 ** min(number - 1, 10), _LONGEST_BACKOFF)
        pause = longest * luck
        if prospect is not _Prospect.PASSES:
            return replace(planned, pause=pause)
        asked = error.retry_after if isinstance(error, UpstreamRefused) else None
        left = planned._left(now)
        if left <= 0 or (asked or 0.0) > left:
            return None
        if asked is not None:
            # Whoever answers too early with the same time again is asked ever later.
            pause = max(asked, pause) if number > 1 else asked
        return replace(planned, pause=min(pause, left))

    def write_notice(
        self, name: str, error: UpstreamError, now: float
    ) -> "tuple[Patience, Notice | None]":
        """Return what the user reads before the pause, if nothing covers it yet.

        Each notice without a time that the upstream named covers twice the time of the
        one before, so that five minutes take four of them.
        """
        if self.pause <= _SHORT or now + self.pause <= self.told_until:
            return self, None
        if isinstance(error, UpstreamRefused) and error.retry_after is not None:
            span, wait = self.pause, wait_in_words(self.pause)
        else:
            span = max(self.pause, _FIRST_SPAN * 2**self.notices)
            span = min(self._left(now), span)
            wait = f"up to {wait_in_words(span)}"
        reason = reason_of(error)
        text = (
            f"{name}: {reason}, still waiting {wait}."
            if self.notices
            else f"{name}: {reason}, waiting {wait}."
        )
        told = replace(self, told_until=now + span, notices=self.notices + 1)
        return told, Notice(text, at_once=True)

    def explain(self, error: UpstreamError, now: float) -> UpstreamError:
        """Return the error at the end of the patience, with the time it took."""
        waited = self._waited(now)
        if _prospect(error) is not _Prospect.PASSES or waited <= _SHORT:
            return error
        told = f"byok waited {wait_in_words(waited)} for it. {error.hint}"
        return error.with_hint(told.strip())

    def _waited(self, now: float) -> float:
        return 0.0 if self.since is None else now - self.since

    def _left(self, now: float) -> float:
        longest = self.seconds
        if self.has_others:
            longest = min(longest, _PATIENCE_WITH_OTHERS)
        return longest - self._waited(now)

    def _retries_for(self, prospect: _Prospect) -> list[_Prospect]:
        return [one for one in self.retries if one is prospect]

    def _most_retries(self, prospect: _Prospect) -> float:
        match prospect:
            case _Prospect.PASSES:
                return 2 if self.has_others else math.inf
            case _Prospect.LOST:
                return 2
            case _Prospect.SLOW:
                is_patient = self.seconds > _BACKGROUND_PATIENCE
                return int(is_patient and not self.has_others)
            case _Prospect.BROKEN:
                return 1
            case _Prospect.NONE:
                return 0


def patience_of(chat: ChatRequest, seconds: float) -> float:
    """Return the seconds that a request waits where people wait `seconds`.

    Nobody wants a completion that comes later, and background jobs come again.
    """
    if chat.fim is not None:
        return 0.0
    return min(seconds, _BACKGROUND_PATIENCE) if chat.silent else seconds


def passes(error: Exception) -> bool:
    """Tell whether a failure is one of load or limits, which ends by itself."""
    return isinstance(error, UpstreamError) and _prospect(error) is _Prospect.PASSES


def rest_of_key(error: UpstreamError) -> float | None:
    """Return how many seconds a key rests after a refusal; None if it is not its own.

    Another key may have what this one has not: permission, money, or room in a limit.
    """
    if not isinstance(error, UpstreamRefused) or error.kind not in _RESTS:
        return None
    asked = error.retry_after
    return _RESTS[error.kind] if asked is None else min(asked, _LONGEST_REST)


def _prospect(error: UpstreamError) -> _Prospect:
    if not error.retryable:
        return _Prospect.NONE
    match error:
        case UpstreamTimeout():
            return _Prospect.SLOW
        case UpstreamUnreachable():
            return _Prospect.LOST
        case UpstreamGarbled():
            return _Prospect.BROKEN
        case UpstreamRefused(kind=kind, upstream_status=status):
            if kind in _PASSING_KIND or status in _PASSING_STATUS:
                return _Prospect.PASSES
            if kind is RefusalKind.TOOL_FAILED or status in _ONCE_STATUS:
                return _Prospect.BROKEN
            return _Prospect.NONE
        case _:
            return _Prospect.NONE
