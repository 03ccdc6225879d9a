"""Rate limits: how long an upstream asks to wait, and which quota is used up.

The wait is in a header, in the details of Google's errors, or only in the message.
"""

import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from byok.chat import Json

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"\d{1,9}(?:\.\d{1,9})?\s?(?:ms|[smh])(?:[a-z]*)"
_PARTS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|[smh])")
# "try again in 1m26.4s", "retry after 26 seconds"
_ASKED = re.compile(rf"(?:retry|try again) (?:in|after) ((?:{_PART}\s?){{1,4}})")
_LONGEST_WORDS = 119  # seconds that are shown as seconds, not minutes


def requested_wait(message: str, error: Any) -> float | None:
    """Return the seconds to wait that an error body names, or None."""
    for detail in _details(error):
        if isinstance(delay := detail.get("retryDelay"), str) and delay:
            return _seconds(delay)
    found = _ASKED.search(message.lower())
    return _seconds(found[1]) if found else None


def quotas_exceeded(error: Any) -> str:
    """Return the names of the quotas that were used up, such as `...PerDay...`."""
    names = (
        violation.get("quotaId")
        for detail in _details(error)
        for violation in _objects(detail.get("violations"))
    )
    return " ".join(name for name in names if isinstance(name, str))


def wait_in_words(seconds: float) -> str:
    """Return a wait for display: `36 s`, `2 min`."""
    if seconds <= _LONGEST_WORDS:
        return f"{max(1, math.ceil(seconds))} s"
    return f"{math.ceil(seconds / 60)} min"


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds to wait that the headers of an error ask for, or None.

    Retry-After has seconds or an HTTP date (RFC 9110, 10.2.3), OpenAI's and Azure's
    retry-after-ms milliseconds. `now` is the time in seconds since 1970.
    """
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return exact / 1000
    text = headers.get("retry-after", "").strip()
    if (seconds := _number(text)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def _details(error: Any) -> Iterator[Json]:
    return _objects(error.get("details") if isinstance(error, dict) else None)


def _objects(values: Any) -> Iterator[Json]:
    found = values if isinstance(values, list) else ()
    return (value for value in found if isinstance(value, dict))


def _seconds(text: str) -> float | None:
    parts = _PARTS.findall(text.lower())
    return sum(float(n) * _UNITS[unit] for n, unit in parts) if parts else None


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if text.replace(".", "", 1).isdecimal() else None
