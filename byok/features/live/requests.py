"""Live requests: the open ones, the latest that ended, and what readers have seen.

While nobody looks, a request costs an entry in a dict and, at its end, one in a ring.
While somebody does, each new request gets a tap that counts what passes; those that
were open before have none, as a tap is attached at the start.

Changes are versions, not messages. Shortly after something happened, the readers wake.
Each asks when it can, whatever differs by then gets the next version, and it is told
what is newer than what it saw. So nothing queues for one that reads slowly.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from byok.chat import Json
from byok.features.base import Feature, Site, Supplies
from byok.features.feed import Feed, FeedEnd, FeedReader
from byok.features.live.pulse import Pulse
from byok.features.live.rows import Counter, EndedRow, OpenRow
from byok.journal.cost import PriceOf, no_price
from byok.journal.entry import make_entry
from byok.record import RequestRecord

MOST_ENDED = 200
MOST_READERS = 8
_EVERY = 0.25  # seconds between two batches
_NO_ENDPOINT = RequestRecord().endpoint


class LiveRequests(Feature):
    """Knows which client requests are open or have just ended.

    Requests without the token, and those of byok's own commands and page, are left out.
    """

    def __init__(self, site: Site, *, every: float = _EVERY) -> None:
        """Send batches at least `every` so many seconds."""
        self._price_of: PriceOf = no_price
        self._redactor = site.redactor
        self._clock = site.clock
        self._open: dict[str, RequestRecord] = {}
        self._counters: dict[str, Counter] = {}
        self._rows: dict[str, OpenRow] = {}  # of open requests that were told
        self._ended: deque[EndedRow] = deque(maxlen=MOST_ENDED)
        self._gone = 0  # the version of the last that left the ring
        self._version = 0
        self._readers: list[FeedReader] = []
        self._pulse = Pulse(self._wake, every)
        self._closed = False

    def configure(self, supplies: Supplies, /) -> None:
        """Use these prices from now on."""
        self._price_of = supplies.price_of

    @property
    def feed(self) -> Feed:
        """The requests, as they begin, pass and end."""
        return self

    def request_started(self, record: RequestRecord, /) -> Counter | None:
        """Remember an open request; bytes are counted while a page reads."""
        self._open[record.request_id] = record
        if not self._readers:
            return None
        counter = self._counters[record.request_id] = Counter(record, self._pulse)
        return counter

    def request_finished(self, record: RequestRecord, /) -> None:
        """Keep the facts of a request among the latest."""
        self._open.pop(record.request_id, None)
        self._rows.pop(record.request_id, None)
        counter = self._counters.pop(record.request_id, None)
        if not record.is_of_client:
            return
        if len(self._ended) == MOST_ENDED:
            self._gone = self._ended[0].version
        entry = make_entry(record, self._clock(), self._price_of)
        self._ended.append(EndedRow(entry, counter, self._version + 1))
        self._pulse.note()

    @contextmanager
    def open_reader(self) -> Iterator[FeedReader]:
        """Read requests until the block ends; of too many readers the oldest ends."""
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
        """Return what a reader has not seen; everything if too much is gone by now.

        `whole`: the rows replace all that were sent before. `now` is in seconds since
        1970. A row without `outcome` has only new counts of the request `request_id`.
        """
        self._refresh()
        whole = reader.seen < max(1, self._gone)
        since = 0 if whole else reader.seen
        reader.seen = self._version
        now, hide = self._clock(), self._redactor
        rows = [row.tell(hide) for row in self._ended if row.version > since]
        told = (row.tell(since, now, hide) for row in self._rows.values())
        rows += [row for row in told if row is not None]
        return {"rows": rows, "now": now, "whole": whole}

    def stop(self) -> None:
        """Tell all readers, also later ones, that the daemon stops."""
        self._closed = True
        self._pulse.stop()
        for reader in self._readers:
            reader.finish(FeedEnd.STOPPING)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()

    def _refresh(self) -> None:
        """Give what differs from the last version the next one."""
        self._version += 1
        for request_id, record in self._open.items():
            if record.is_of_client and record.endpoint != _NO_ENDPOINT:
                row = self._rows.get(request_id)
                if row is None:
                    row = OpenRow(record, self._counters.get(request_id))
                    self._rows[request_id] = row
                row.refresh(self._version)
