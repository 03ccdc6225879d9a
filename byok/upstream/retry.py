"""Retries: which failed requests are repeated, when, and what users read of it.

What passes with time is waited for by the clock, not by a count of tries. The time runs
from the first failure, so that a long answer that failed does not use it up.
"""

import math
from collections.abc import Callable
from enum import Enum

from byok.chat import ChatRequest
from byok.dialects.rate_limits import wait_in_words
from byok.errors import (
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from byok.events import Notice
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


_MOST_RETRIES = {
    _Prospect.PASSES: math.inf,
    _Prospect.LOST: 2,
    _Prospect.SLOW: 1,
    _Prospect.BROKEN: 1,
    _Prospect.NONE: 0,
}


class Patience:
    """The waits of one request: at most `seconds` in all, after its first failure.

    Where `has_others`, another model is asked after a few seconds, and at once where
    this one was too slow. `clock` gives seconds, `luck` random numbers from 0 to 1.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float],
        luck: Callable[[], float],
        *,
        has_others: bool = False,
    ) -> None:
        self._seconds = min(seconds, _PATIENCE_WITH_OTHERS) if has_others else seconds
        self._most = {
            **_MOST_RETRIES,
            _Prospect.PASSES: 2.0 if has_others else math.inf,
        }
        self._retries_slow = seconds > _BACKGROUND_PATIENCE and not has_others
        self._clock = clock
        self._luck = luck
        self._since: float | None = None
        self._retries = dict.fromkeys(_Prospect, 0)
        self._told_until = -math.inf
        self._notices = 0

    def plan_wait(self, error: UpstreamError) -> float | None:
        """Return the seconds to wait before the next attempt, None to give up.

        The wait is exponential with full jitter, or as long as the upstream asks for.
        A connection that is lost was often closed by the server after its last answer:
        the first retry is at once.
        """
        if self._since is None:
            self._since = self._clock()
        prospect = _prospect(error)
        if prospect is _Prospect.SLOW and not self._retries_slow:
            return None
        if self._retries[prospect] >= self._most[prospect]:
            return None
        self._retries[prospect] += 1
        number = self._retries[prospect]
        if prospect is _Prospect.LOST and number == 1 and _had_connection(error):
            return 0.0
        if not self._seconds:
            return None
        longest = min(_FIRST_BACKOFF * 2.0 ** min(number - 1, 10), _LONGEST_BACKOFF)
        seconds = longest * self._luck()
        if prospect is not _Prospect.PASSES:
            return seconds
        asked = error.retry_after if isinstance(error, UpstreamRefused) else None
        left = self._seconds - self.waited
        if left <= 0 or (asked or 0.0) > left:
            return None
        if asked is not None:
            # Whoever answers too early with the same time again is asked ever later.
            seconds = max(asked, seconds) if number > 1 else asked
        return min(seconds, left)

    @property
    def waited(self) -> float:
        """The seconds since the first failure."""
        return 0.0 if self._since is None else self._clock() - self._since

    def write_notice(
        self, name: str, error: UpstreamError, seconds: float
    ) -> Notice | None:
        """Return what the user reads before a wait, if nothing covers it yet.

        Each notice without a time that the upstream named covers twice the time of the
        one before, so that five minutes take four of them.
        """
        until, reason = self._clock() + seconds, reason_of(error)
        if seconds <= _SHORT or until <= self._told_until:
            return None
        if isinstance(error, UpstreamRefused) and error.retry_after is not None:
            span, wait = seconds, wait_in_words(seconds)
        else:
            left = self._seconds - self.waited
            span = min(left, max(seconds, _FIRST_SPAN * 2**self._notices))
            wait = f"up to {wait_in_words(span)}"
        self._told_until = self._clock() + span
        self._notices += 1
        still = "still " if self._notices > 1 else ""
        return Notice(f"{name}: {reason}, {still}waiting {wait}.", at_once=True)

    def explain(self, error: UpstreamError) -> UpstreamError:
        """Return the error at the end of the patience, with the time it took."""
        if _prospect(error) is not _Prospect.PASSES or self.waited <= _SHORT:
            return error
        told = f"byok waited {wait_in_words(self.waited)} for it. {error.hint}"
        return error.with_hint(told.strip())


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


def _had_connection(error: UpstreamError) -> bool:
    return not isinstance(error, ConnectFailed)


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
