"""What a refusal for too many requests tells in its body: how long to wait, for what.

Google names both in the details of the error, others only in the sentence.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from byok.chat import Json

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"\d{1,9}(?:\.\d{1,9})?\s?(?:ms|[smh])(?:[a-z]*)"
_PARTS = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s?(ms|[smh])")
# "try again in 1m26.4s", "retry after 26 seconds"
_ASKED = re.compile(rf"(?:retry|try again) (?:in|after) ((?:{_PART}\s?){{1,4}})")
_LONGEST_WORDS = 119  # seconds that are told as such


def requested_wait(message: str, error: Any) -> float | None:
    """Return the seconds to wait that the body of a refusal names, or None."""
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
    """Say how long to wait."""
    if seconds <= _LONGEST_WORDS:
        return f"{max(1, math.ceil(seconds))} s"
    return f"{math.ceil(seconds / 60)} min"


def _details(error: Any) -> Iterator[Json]:
    return _objects(error.get("details") if isinstance(error, dict) else None)


def _objects(values: Any) -> Iterator[Json]:
    found = values if isinstance(values, list) else ()
    return (value for value in found if isinstance(value, dict))


def _seconds(text: str) -> float | None:
    parts = _PARTS.findall(text.lower())
    return sum(float(n) * _UNITS[unit] for n, unit in parts) if parts else None
