"""Live requests for the page: the open ones and the latest.

Without a reader, a request costs an entry in a dict and, at its end, one in a ring
buffer. With a reader, each new request gets a tap that counts bytes; requests that were
open before have no tap, because it is attached at the start.

Changes are versions, not messages. Shortly after a change, the readers wake. When a
reader asks, the changes so far get the next version, and it receives all that are newer
than its last version. So nothing is queued for a slow reader.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from byok.core.chat import Json
from byok.core.language import translate
from byok.core.platform.installation import find_command, make_pasteable
from byok.core.record import Head, Hop, RequestRecord
from byok.core.redact import Redactor
from byok.features.base import Feature, Feed, FeedEnd, FeedReader, Site, Supplies
from byok.features.cost import PriceOf, no_price
from byok.features.journal.entry import JournalEntry, hide_secrets, make_entry

MOST_ENDED = 200
MOST_READERS = 8
_MAX_MESSAGE_CHARS = 1000
_PULSE_SECONDS = 0.25  # between two batches of changes
_NO_ENDPOINT = RequestRecord().endpoint


class Pulse:
    """Calls a function once, `seconds` after the first `note` since the last call.

    `due` is true meanwhile: callers that note changes often check it first.
    """

    __slots__ = ("_act", "_seconds", "_timer", "due", "on")

    def __init__(self, act: Callable[[], None], seconds: float) -> None:
        self._act = act
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.due = False
        self.on = False  # while off, notes are ignored

    def note(self) -> None:
        """Schedule the call; to be called on the loop."""
        if self.on and not self.due:
            self.due = True
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._fire)

    def stop(self) -> None:
        """Ignore notes from now on, and cancel the call."""
        self.on = self.due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self.due, self._timer = False, None
        self._act()


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

    def __call__(self, hop: Hop, piece: bytes | Head, /) -> None:
        """Count a piece, unless it is a head."""
        if isinstance(piece, Head):
            return
        if hop is Hop.TO_CLIENT:
            self.sent += len(piece)
            self.pieces += 1
        elif hop is Hop.FROM_UPSTREAM:
            self.received += len(piece)
            self.reads += 1
        # Otherwise the page's own stream would cause changes without an end.
        if not self._pulse.due and self._record.is_of_client:
            self._pulse.note()


class OpenRow:
    """An open request, and the versions in which it last changed."""

    __slots__ = ("_changed", "_counted", "_counter", "_entry", "_passed", "_record")

    def __init__(self, record: RequestRecord, counter: Counter | None) -> None:
        self._record = record
        self._counter = counter
        self._entry: JournalEntry | None = None
        self._passed = 0
        self._changed = self._counted = 0

    def refresh(self, version: int) -> None:
        """Store the version if the request has changed since the last check."""
        # All facts but the elapsed time.
        entry = make_entry(self._record, 0.0, no_price)._replace(seconds=0.0)
        if entry != self._entry:
            self._entry, self._changed = entry, version
        counter = self._counter
        passed = counter.pieces + counter.reads if counter else 0
        if passed != self._passed:
            self._passed, self._counted = passed, version

    def changes(self, since: int, now: float, redactor: Redactor) -> Json | None:
        """Return the changes since a version: all facts, only counts, or None."""
        if self._changed > since:
            entry = make_entry(self._record, now, no_price)
            facts = _facts(entry, self._record.message, redactor)
            # The cost is unknown before the end.
            return {**facts, "cost": None, **_counts(self._counter)}
        if self._counted > since:
            record = self._record
            names = {"request_id": record.request_id, "seconds": record.seconds}
            return {**names, **_counts(self._counter)}
        return None


class EndedRow(NamedTuple):
    """A request that has ended, and the version of its end.

    `entry` is a function, because most requests are never read. `message` is the text
    of its failure, also of the upstream, which the journal does not store.
    """

    entry: Callable[[], JournalEntry]
    counter: Counter | None
    version: int
    message: str = ""

    def facts(self, redactor: Redactor) -> Json:
        """Return all facts."""
        facts = _facts(self.entry(), self.message, redactor)
        return {**facts, **_counts(self.counter)}


def _facts(entry: JournalEntry, message: str, redactor: Redactor) -> dict[str, Any]:
    """Return the fields of an entry by name, without secrets, and the message.

    The message is in the language of the current reader.
    """
    facts: dict[str, Any] = {
        name: hide_secrets(value, redactor) if isinstance(value, str) else value
        for name, value in entry._asdict().items()
    }
    text = hide_secrets(message, redactor)[:_MAX_MESSAGE_CHARS]
    return {**facts, "message": make_pasteable(translate(text), find_command())}


def _counts(counter: Counter | None) -> dict[str, int | None]:
    """Return the counts, None if the request began without a reader."""
    names = ("sent", "pieces", "received", "reads")
    return {name: getattr(counter, name, None) for name in names}


class LiveRequests(Feature):
    """The client requests that are open or have just ended.

    Requests without the token, and those of byok's own commands and page, are left out.
    """

    def __init__(self, site: Site, *, every: float = _PULSE_SECONDS) -> None:
        """Wake readers at most once in `every` seconds."""
        self._price_of: PriceOf = no_price
        self._redactor = site.redactor
        self._clock = site.clock
        self._open: dict[str, RequestRecord] = {}
        self._counters: dict[str, Counter] = {}
        self._rows: dict[str, OpenRow] = {}  # of open requests that readers know
        self._ended: deque[EndedRow] = deque(maxlen=MOST_ENDED)
        self._dropped = 0  # the version of the last row that left the ring buffer
        self._version = 0
        self._readers: list[FeedReader] = []
        self._pulse = Pulse(self._wake, every)
        self._closed = False

    def configure(self, supplies: Supplies, /) -> None:
        """Use these prices from now on."""
        self._price_of = supplies.price_of

    @property
    def feed(self) -> Feed:
        """The requests, as they begin, change and end."""
        return self

    def request_started(self, record: RequestRecord, /) -> Counter | None:
        """Store an open request; its bytes are counted if there is a reader."""
        self._open[record.request_id] = record
        if not self._readers:
            return None
        counter = self._counters[record.request_id] = Counter(record, self._pulse)
        return counter

    def request_finished(self, record: RequestRecord, /) -> None:
        """Store the facts of a request among the latest."""
        self._open.pop(record.request_id, None)
        self._rows.pop(record.request_id, None)
        counter = self._counters.pop(record.request_id, None)
        if not record.is_of_client:
            return
        if len(self._ended) == MOST_ENDED:
            self._dropped = self._ended[0].version
        entry = partial(make_entry, record, self._clock(), self._price_of)
        ended = EndedRow(entry, counter, self._version + 1, record.message)
        self._ended.append(ended)
        self._pulse.note()

    @contextmanager
    def open_reader(self) -> Iterator[FeedReader]:
        """Open a reader for this context; of too many readers the oldest ends."""
        reader = FeedReader()
        self._readers.append(reader)
        self._pulse.on = not self._closed
        if self._closed:
            reader.finish(FeedEnd.STOPPING)
        if len(self._readers) > MOST_READERS:
            self._readers.pop(0).finish(FeedEnd.REPLACED)
        try:
            yield reader
        finally:
            if reader in self._readers:
                self._readers.remove(reader)
            if not self._readers:
                self._pulse.stop()
                self._rows.clear()

    def take(self, reader: FeedReader, /) -> Json:
        """Return the changes for a reader; everything if some were dropped meanwhile.

        `whole`: the rows replace all earlier ones. `now` is in seconds since 1970. A
        row without `outcome` has only new counts of the request `request_id`.
        """
        self._refresh()
        whole = reader.seen < max(1, self._dropped)
        since = 0 if whole else reader.seen
        reader.seen = self._version
        now, hide = self._clock(), self._redactor
        rows = [row.facts(hide) for row in self._ended if row.version > since]
        changes = (row.changes(since, now, hide) for row in self._rows.values())
        rows += [row for row in changes if row is not None]
        return {"rows": rows, "now": now, "whole": whole}

    def stop(self) -> None:
        """End all readers, also later ones: the daemon stops."""
        self._closed = True
        self._pulse.stop()
        for reader in self._readers:
            reader.finish(FeedEnd.STOPPING)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()

    def _refresh(self) -> None:
        """Give all changes since the last version the next one."""
        self._version += 1
        for request_id, record in self._open.items():
            if record.is_of_client and record.endpoint != _NO_ENDPOINT:
                row = self._rows.get(request_id)
                if row is None:
                    row = OpenRow(record, self._counters.get(request_id))
                    self._rows[request_id] = row
                row.refresh(self._version)
