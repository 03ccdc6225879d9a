"""Retries: which failed requests are repeated, and after how many seconds. Pure."""

from dataclasses import dataclass

from byok.errors import (
    ConnectFailed,
    RefusalKind,
    UpstreamError,
    UpstreamGarbled,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)

# The errors of servers and of gateways before them; 520 to 523 are Cloudflare's.
_REPEATED = frozenset({429, 502, 503, 504, 520, 521, 522, 523, 529})
# An error inside a stream has the status 0; what it says may be anything.
_ONLY_ONCE = frozenset({0, 500})
_PASSING = frozenset(
    {RefusalKind.LOADING, RefusalKind.OVERLOADED, RefusalKind.RATE_LIMIT}
)


_LONGEST_REST = 86_400.0
# Seconds; an account may be paid for meanwhile, and a limit is per minute.
_RESTS = {
    RefusalKind.AUTH: 900.0,
    RefusalKind.QUOTA: 900.0,
    RefusalKind.RATE_LIMIT: 60.0,
}


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `tries` retries, with exponential backoff and full jitter, in seconds.

    A wait above `longest_wait` that an upstream asks for is passed on to the client
    instead.
    """

    tries: int = 2
    first_wait: float = 0.5
    longest_backoff: float = 8.0
    longest_wait: float = 30.0

    def wait(self, error: UpstreamError, attempt: int, luck: float) -> float | None:
        """Return the seconds to wait before attempt `attempt` + 1, None to give up.

        `attempt` counts from 1, `luck` is a random number from 0 to 1. Timeouts are not
        retried: the request may already be paid for. An answer that was empty or cut
        may be paid for as well, so it is retried once. A connection that is lost was
        often closed by the server after its last answer: the first retry is at once.
        """
        if attempt > min(self.tries, _most_retries(error)):
            return None
        asked = error.retry_after if isinstance(error, UpstreamRefused) else None
        if asked is not None:
            return asked if asked <= self.longest_wait else None
        if attempt == 1 and _was_lost(error):
            return 0.0
        backoff = min(self.first_wait * 2 ** (attempt - 1), self.longest_backoff)
        return float(backoff * luck)


def _was_lost(error: UpstreamError) -> bool:
    """Tell whether a connection was lost after it had been established."""
    return isinstance(error, UpstreamUnreachable) and not isinstance(
        error, ConnectFailed | UpstreamTimeout
    )


def rest_of_key(error: UpstreamError) -> float | None:
    """Return how many seconds a key rests after a refusal; None if it is not its own.

    Another key may have what this one has not: permission, money, or room in a limit.
    """
    if not isinstance(error, UpstreamRefused) or error.kind not in _RESTS:
        return None
    asked = error.retry_after
    return _RESTS[error.kind] if asked is None else min(asked, _LONGEST_REST)


def _most_retries(error: UpstreamError) -> float:
    """Return how many retries a failure is worth, of any number infinity."""
    if not error.retryable or isinstance(error, UpstreamTimeout):
        return 0
    match error:
        case UpstreamUnreachable():
            return float("inf")
        case UpstreamGarbled():
            return 1
        case UpstreamRefused(kind=kind, upstream_status=status):
            if kind in _PASSING or status in _REPEATED:
                return float("inf")
            return 1 if status in _ONLY_ONCE else 0
        case _:
            return 0
