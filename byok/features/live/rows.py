"""What a page gets about a request while it is open, and when it has ended."""

from collections.abc import Callable
from typing import Any, NamedTuple

from byok.chat import Json
from byok.features.live.pulse import Pulse
from byok.journal.cost import no_price
from byok.journal.entry import JournalEntry, make_entry
from byok.record import Hop, RequestRecord


class Counter:
    """Tap that counts the bytes of a request, and signals changes.

    `sent` bytes went to the client in `pieces`; `received` bytes came from upstreams in
    `reads`.
    """

    __slots__ = ("_pulse", "_record", "pieces", "reads", "received", "sent")

    def __init__(self, record: RequestRecord, pulse: Pulse) -> None:
        self.sent = self.pieces = self.received = self.reads = 0
        self._record = record
        self._pulse = pulse

    def __call__(self, hop: Hop, data: bytes, /) -> None:
        """Count one piece."""
        if hop is Hop.TO_CLIENT:
            self.sent += len(data)
            self.pieces += 1
        elif hop is Hop.FROM_UPSTREAM:
            self.received += len(data)
            self.reads += 1
        # The page's own stream would otherwise tell of itself without an end.
        if not self._pulse.due and self._record.is_of_client:
            self._pulse.note()


class OpenRow:
    """An open request, and the versions in which it last changed."""

    __slots__ = ("_changed", "_counted", "_counter", "_passed", "_record", "_seen")

    def __init__(self, record: RequestRecord, counter: Counter | None) -> None:
        self._record = record
        self._counter = counter
        self._seen: tuple[object, ...] = ()
        self._passed = 0
        self._changed = self._counted = 0

    def refresh(self, version: int) -> None:
        """Check whether the request has changed since the last check."""
        seen = _changeable(self._record)
        if seen != self._seen:
            self._seen, self._changed = seen, version
        counter = self._counter
        passed = counter.pieces + counter.reads if counter else 0
        if passed != self._passed:
            self._passed, self._counted = passed, version

    def tell(
        self, since: int, now: float, redactor: Callable[[str], str]
    ) -> Json | None:
        """Return what differs since a version: all facts, the counts alone, or None."""
        if self._changed > since:
            entry = make_entry(self._record, now, no_price)
            told = _facts(entry, redactor)
            # Not before the end: a request may cost nothing so far, and will not.
            return {**told, "cost": None, **_counts(self._counter)}
        if self._counted > since:
            record = self._record
            names = {"request_id": record.request_id, "seconds": record.seconds}
            return {**names, **_counts(self._counter)}
        return None


class EndedRow(NamedTuple):
    """A request that has ended, and the version that reports it."""

    entry: JournalEntry
    counter: Counter | None
    version: int

    def tell(self, redactor: Callable[[str], str]) -> Json:
        """Return all facts."""
        return {**_facts(self.entry, redactor), **_counts(self.counter)}


def _changeable(record: RequestRecord) -> tuple[object, ...]:
    """Return what changes in the course of a request, besides counts and time."""
    return (
        record.endpoint,
        record.conversation,
        record.purpose,
        record.model_asked,
        record.upstream,
        record.model,
        record.attempts,
        record.first_byte,
        record.usage,
        record.repairs,
        record.dropped_calls,
        record.notices,
        record.loop,
        record.error,
    )


def _facts(entry: JournalEntry, redactor: Callable[[str], str]) -> dict[str, Any]:
    """Return an entry with the names of its fields; texts without secrets."""
    told: dict[str, Any] = entry._asdict()
    for name, value in told.items():
        if value and isinstance(value, str):
            told[name] = redactor(value.encode("utf-8", "replace").decode())
    return told


def _counts(counter: Counter | None) -> dict[str, int | None]:
    """Return what was counted; None where nobody looked when the request began."""
    if counter is None:
        return dict.fromkeys(("sent", "pieces", "received", "reads"))
    return {
        "sent": counter.sent,
        "pieces": counter.pieces,
        "received": counter.received,
        "reads": counter.reads,
    }
