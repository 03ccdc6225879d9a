"""Retries: which failed requests are repeated, and after how many seconds. Pure."""

from dataclasses import dataclass

from byok.errors import (
    UpstreamError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)

_ONLY_ONCE = frozenset({500})
_REPEATED = frozenset({429, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `tries` retries, with exponential backoff and full jitter, in seconds.

    A Retry-After above `longest_wait` is passed on to the client instead.
    """

    tries: int = 2
    first_wait: float = 0.5
    longest_backoff: float = 8.0
    longest_wait: float = 30.0

    def wait(self, error: UpstreamError, attempt: int, luck: float) -> float | None:
        """Return the seconds to wait before attempt `attempt` + 1, None to give up.

        `attempt` counts from 1, `luck` is a random number from 0 to 1. Timeouts are not
        retried: the request may already be paid for.
        """
        if attempt > self.tries or not self._repeatable(error, attempt):
            return None
        asked = error.retry_after if isinstance(error, UpstreamRefused) else None
        if asked is not None:
            return asked if asked <= self.longest_wait else None
        backoff = min(self.first_wait * 2 ** (attempt - 1), self.longest_backoff)
        return float(backoff * luck)

    @staticmethod
    def _repeatable(error: UpstreamError, attempt: int) -> bool:
        if isinstance(error, UpstreamUnreachable):
            return error.retryable and not isinstance(error, UpstreamTimeout)
        if isinstance(error, UpstreamRefused) and error.retryable:
            status = error.upstream_status
            return status in _REPEATED or (status in _ONLY_ONCE and attempt == 1)
        return False
