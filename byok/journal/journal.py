"""The journal of requests, as an observer: a finished request becomes an entry."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from byok.journal.cost import PriceOf, no_price
from byok.journal.entry import make_entry
from byok.record import RequestRecord

if TYPE_CHECKING:
    from byok.journal.writer import JournalWriter, WriterLimits


class Journal:
    """Observer that records the outcome of clients' requests; it needs no bytes.

    Requests without the token, and those of byok's own commands, are not recorded.
    """

    def __init__(
        self,
        path: Path,
        redactor: Callable[[str], str],
        limits: "WriterLimits | None" = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take the file; nothing is opened before the first request has ended."""
        self._path = path
        self._redactor = redactor
        self._limits = limits
        self._clock = clock
        self._writer: JournalWriter | None = None
        self._price_of: PriceOf = no_price

    @property
    def lost(self) -> int:
        """The number of requests that could not be written."""
        return self._writer.lost if self._writer else 0

    @property
    def waiting(self) -> int:
        """The number of requests that are still to be written."""
        return self._writer.waiting if self._writer else 0

    def configure(self, keep_days: int, price_of: PriceOf) -> None:
        """Keep requests for so many days (0 for none), at these prices, from now on."""
        if self._writer is None:
            from byok.journal.writer import JournalWriter  # with SQLite

            self._writer = JournalWriter(
                self._path, self._redactor, self._limits, clock=self._clock
            )
        self._writer.keep_days, self._price_of = keep_days, price_of

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing until the request ends."""

    def request_finished(self, record: RequestRecord, /) -> None:
        """Keep the facts of a request."""
        writer = self._writer
        if writer is not None and writer.keep_days and record.is_of_client:
            writer.add(make_entry(record, self._clock(), self._price_of))

    def close(self) -> None:
        """Write what is left; later requests are not kept. Blocks for seconds."""
        if self._writer is not None:
            self._writer.close()
