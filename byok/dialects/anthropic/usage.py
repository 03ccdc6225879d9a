"""Token counts in answers of the Messages API."""

from typing import Any

from byok.events import Usage

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class UsageCounter:
    """Keeps the newest count of each kind.

    The counts of a `message_delta` are those of the whole answer so far; what it lacks
    or has as 0 was in the `message_start`.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def note(self, usage: Any) -> None:
        """Read a usage object; anything else is ignored."""
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
        found = {name: usage.get(name) for name in _COUNTS} | {"thinking": thinking}
        for name, value in found.items():
            if type(value) is int and value > 0:
                self._counts[name] = value

    def usage(self) -> Usage | None:
        """Return the counts, None where there were none.

        The API's `input_tokens` are without those of the cache.
        """
        if not self._counts:
            return None
        fresh, output, read, written = (self._counts.get(n, 0) for n in _COUNTS)
        thinking = self._counts.get("thinking", 0)
        sent = fresh + read + written
        return Usage(sent, output, read, written, thinking, cache_told=True)
