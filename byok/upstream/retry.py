"""Retries: which failed requests are repeated, when, and what users are told.

Failures that pass with time are retried until a time limit, not a number of times. The
time runs from the first failure, so that a long answer that failed does not use it up.
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

# All times are in seconds.
PATIENCE = 300.0  # of people, unless the settings say otherwise
_BACKGROUND_PATIENCE = 60.0
_PATIENCE_WITH_OTHERS = 5.0  # another model's answer now is better than a long wait
_FIRST_BACKOFF, _MAX_BACKOFF = 0.5, 30.0
_UNNOTICED_WAIT = 3.0  # a user may take it for a slow answer
_FIRST_NOTICE_SPAN = 30.0  # each further notice covers twice the time
_MAX_KEY_COOLDOWN = 86_400.0
# An account may be paid for meanwhile, and limits are per minute.
_KEY_COOLDOWNS = {
    RefusalKind.AUTH: 900.0,
    RefusalKind.QUOTA: 900.0,
    RefusalKind.RATE_LIMIT: 60.0,
}

# The statuses of servers and of gateways before them; 520 to 523 are Cloudflare's.
_PASSING_STATUS = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 529})
# An error inside a stream has the status 0, and may have any cause.
_ONCE_STATUS = frozenset({0, 500})
_PASSING_KIND = frozenset(
    {RefusalKind.LOADING, RefusalKind.OVERLOADED, RefusalKind.RATE_LIMIT}
)


class _Prospect(Enum):
    """The possible outcome of sending the same request again."""

    PASSES = "the failure ends by itself"
    LOST = "another connection may hold"
    SLOW = "it may be faster"
    BROKEN = "another answer may be whole, and is paid for again"
    NONE = "the same failure"


class Patience(Struct, frozen=True):
    """How long a request waits for its upstream: at most `seconds` after a failure.

    If it `has_others`, another model is asked after a few seconds, or at once if this
    one was too slow. It is immutable: a planned wait is another instance.

    Attributes:
        since: when the first failure was, None before it.
        retries: what was expected of each retry.
        pause: how long the next attempt waits.
        noticed_until: the end of the wait that the user was told of.
        notices: the number of notices about waits.
    """

    seconds: float
    has_others: bool = False
    since: float | None = None
    retries: tuple[_Prospect, ...] = ()
    pause: float = 0.0
    noticed_until: float = -math.inf
    notices: int = 0

    def plan_wait(
        self, error: UpstreamError, now: float, luck: float
    ) -> "Patience | None":
        """Return the patience with the pause before the next attempt, None to give up.

        The pause is an exponential back-off with full jitter (`luck` is a random number
        from 0 to 1), or as long as the upstream asks for. A lost connection was often
        closed by the server after its last answer: the first retry is immediate.
        """
        prospect, since = _prospect(error), now if self.since is None else self.since
        if self.retries.count(prospect) >= self._max_retries(prospect):
            return None
        retries = (*self.retries, prospect)
        planned = replace(self, since=since, retries=retries, pause=0.0)
        number = retries.count(prospect)
        had_connection = not isinstance(error, ConnectFailed)
        if prospect is _Prospect.LOST and number == 1 and had_connection:
            return planned
        if not self.seconds:
            return None
        max_pause = min(_FIRST_BACKOFF * 2.0 ** min(number - 1, 10), _MAX_BACKOFF)
        pause = max_pause * luck
        if prospect is not _Prospect.PASSES:
            return replace(planned, pause=pause)
        requested = error.retry_after if isinstance(error, UpstreamRefused) else None
        remaining = planned._remaining(now)
        if remaining <= 0 or (requested or 0.0) > remaining:
            return None
        if requested is not None:
            # The requested time may be too short each time, so the back-off grows too.
            pause = max(requested, pause) if number > 1 else requested
        return replace(planned, pause=min(pause, remaining))

    def write_notice(
        self, name: str, error: UpstreamError, now: float
    ) -> "tuple[Patience, Notice | None]":
        """Return the notice before the pause, unless an earlier one covers it.

        The returned patience knows the notice. If the upstream named no time, each
        notice covers twice the time of the one before, so that five minutes take four
        of them.
        """
        if self.pause <= _UNNOTICED_WAIT or now + self.pause <= self.noticed_until:
            return self, None
        if isinstance(error, UpstreamRefused) and error.retry_after is not None:
            span, wait = self.pause, wait_in_words(self.pause)
        else:
            span = max(self.pause, _FIRST_NOTICE_SPAN * 2**self.notices)
            span = min(self._remaining(now), span)
            wait = f"up to {wait_in_words(span)}"
        reason = reason_of(error)
        text = (
            f"{name}: {reason}, still waiting {wait}."
            if self.notices
            else f"{name}: {reason}, waiting {wait}."
        )
        noticed = replace(self, noticed_until=now + span, notices=self.notices + 1)
        return noticed, Notice(text, at_once=True)

    def explain(self, error: UpstreamError, now: float) -> UpstreamError:
        """Return the error at the end of the patience, with the time of the wait."""
        waited = self._waited(now)
        if _prospect(error) is not _Prospect.PASSES or waited <= _UNNOTICED_WAIT:
            return error
        hint = f"byok waited {wait_in_words(waited)} for it. {error.hint}"
        return error.with_hint(hint.strip())

    def _waited(self, now: float) -> float:
        return 0.0 if self.since is None else now - self.since

    def _remaining(self, now: float) -> float:
        seconds = self.seconds
        if self.has_others:
            seconds = min(seconds, _PATIENCE_WITH_OTHERS)
        return seconds - self._waited(now)

    def _max_retries(self, prospect: _Prospect) -> float:
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
    """Return how many seconds a request waits if people wait `seconds`.

    A late completion is useless, and background jobs are repeated anyway.
    """
    if chat.fim is not None:
        return 0.0
    return min(seconds, _BACKGROUND_PATIENCE) if chat.silent else seconds


def passes(error: Exception) -> bool:
    """Tell whether a failure comes from load or limits, and so ends by itself."""
    return isinstance(error, UpstreamError) and _prospect(error) is _Prospect.PASSES


def key_cooldown(error: UpstreamError) -> float | None:
    """Return the cooldown of a key after a refusal in seconds.

    It is None if the refusal is not about the key. Another key may have what this one
    lacks: permission, money, or an unused rate limit.
    """
    if not isinstance(error, UpstreamRefused) or error.kind not in _KEY_COOLDOWNS:
        return None
    requested = error.retry_after
    if requested is None:
        return _KEY_COOLDOWNS[error.kind]
    return min(requested, _MAX_KEY_COOLDOWN)


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
