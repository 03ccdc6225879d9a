"""Keeps the journal of requests: a finished request becomes an entry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from byok.features.base import Feature, Number, Site, Supplies
from byok.features.journal.settings import JournalSettings
from byok.features.status import StatusLine
from byok.journal.cost import PriceOf, no_price
from byok.journal.entry import make_entry
from byok.record import RequestRecord

if TYPE_CHECKING:
    from byok.features.journal.writer import JournalWriter, WriterLimits


class JournalKeeper(Feature):
    """Records the outcome of clients' requests.

    Requests without the token, and those of byok's own commands, are not recorded.
    """

    def __init__(self, site: Site, limits: "WriterLimits | None" = None) -> None:
        """Take the file; nothing is opened before the first request has ended."""
        self._site = site
        self._limits = limits
        self._clock = site.clock
        self._writer: JournalWriter | None = None
        self._price_of: PriceOf = no_price

    @property
    def lost(self) -> int:
        """The number of requests that could not be written."""
        return self._writer.lost if self._writer else 0

    @property
    def unwritten(self) -> int:
        """The number of requests that are still to be written."""
        return self._writer.waiting if self._writer else 0

    @property
    def numbers(self) -> Sequence[Number]:
        """The number of requests that could not be written."""
        meaning = "Requests that could not be written to the journal."
        return (Number("byok_journal_lost_total", "counter", meaning, self.lost),)

    async def status(self) -> Sequence[StatusLine] | None:
        """Tell if requests could not be written."""
        if not self.lost:
            return None
        requests = "1 request" if self.lost == 1 else f"{self.lost:,} requests"
        text = f"{requests} could not be written; why: {self._site.paths.log}"
        return [StatusLine(text, "journal.lost", {"count": self.lost}, warns=True)]

    def configure(self, supplies: Supplies, /) -> None:
        """Keep requests for so many days (0 for none), at these prices, from now on."""
        if self._writer is None:
            from byok.features.journal.writer import JournalWriter  # with SQLite

            self._writer = JournalWriter(
                self._site.paths.journal,
                self._site.redactor,
                self._limits,
                clock=self._clock,
            )
        self._writer.keep_days = supplies.settings.section(JournalSettings).keep_days
        self._price_of = supplies.price_of

    def request_finished(self, record: RequestRecord, /) -> None:
        """Keep the facts of a request."""
        writer = self._writer
        if writer is not None and writer.keep_days and record.is_of_client:
            writer.add(make_entry(record, self._clock(), self._price_of))

    def close(self) -> None:
        """Write what is left; later requests are not kept. Blocks for seconds."""
        if self._writer is not None:
            self._writer.close()
