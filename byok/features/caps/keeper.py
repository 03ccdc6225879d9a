"""Keeps requests within the caps: refuses those beyond one, counts the others.

A request counts when it begins, so a cap on requests is exact. What it takes is known
at its end: so requests that run side by side when a cap on tokens or dollars is reached
all end, and the cap is exceeded by what they take, at most `limits.streams` of them.
"""

import logging
from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import date

from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.caps.ledger import Ledger, Spent, day_of, spending_of
from byok.features.caps.limits import Cap, Period, Unit, list_caps
from byok.features.caps.settings import CapSettings
from byok.features.journal.settings import JournalSettings
from byok.features.status import StatusLine, StatusRow
from byok.journal.cost import PriceOf, no_price
from byok.journal.entry import make_entry
from byok.record import RequestRecord

_log = logging.getLogger(__name__)
_MOST_TOLD = 1000
_UNCOUNTED = StatusLine(
    "counted since the start of byok only, as the journal is off", "caps.uncounted"
)


class CapKeeper(Feature):
    """Admits requests to models, and counts what they took."""

    def __init__(self, site: Site) -> None:
        """Take the journal's file; without caps it is never read."""
        self._journal = site.paths.journal
        self._clock = site.clock
        self._caps: tuple[Cap, ...] = ()
        self._price_of: PriceOf = no_price
        self._journals = False
        self._ledger = Ledger(self._journal)
        self._begun: dict[str, str] = {}  # conversations by request
        self._begun_in: Counter[str] = Counter()
        self._told: set[tuple[Cap, Hashable]] = set()
        self._logged: set[tuple[Cap, Hashable]] = set()

    def configure(self, supplies: Supplies, /) -> None:
        """Use these caps and prices from now on."""
        settings = supplies.settings
        caps, had = list_caps(settings.section(CapSettings)), self._caps
        journals = settings.section(JournalSettings).keep_days > 0
        if caps and not had:
            self._ledger = Ledger(self._journal)
        if caps and not journals and (self._journals or not had):
            _log.warning(
                "the journal is off (journal.keep_days), so after a restart caps do "
                "not know what was spent before"
            )
        self._caps, self._price_of = caps, supplies.price_of
        self._journals = journals

    def read_again(self) -> None:
        """Count anew from the journal, to which the process before has written."""
        if self._caps and self._journals:
            self._ledger = Ledger(self._journal)
            self._ledger.begin()

    async def admit(self, asking: Asking, /) -> Verdict:
        """Let a request begin, which counts it, or refuse it."""
        record = asking.record
        if not self._caps or record.request_id in self._begun:
            return PASS
        day, talk = day_of(self._clock()), record.conversation
        await self._ledger.look_up(day, talk)
        price = self._price_of(asking.upstream, asking.model)
        free = price is not None and price.is_free
        near: list[tuple[Cap, Hashable, str]] = []
        for cap in self._caps:
            if cap.period is Period.CONVERSATION and not talk:
                continue
            of = day if cap.period is Period.DAY else talk
            if free and cap.unit is Unit.DOLLARS:
                continue
            used, unpriced = self._measure(cap, day, talk)
            if used >= cap.most:
                return Verdict(cap.error(used, unpriced))
            used += cap.unit is Unit.REQUESTS  # this one
            if cap.is_near(used):
                near.append((cap, of, cap.warning(used, unpriced)))
        self._begun[record.request_id] = talk
        self._begun_in[talk] += 1
        return Verdict(notices=self._warn(near, shown=asking.shows_notices))

    def _measure(self, cap: Cap, day: date, talk: str) -> tuple[float, int]:
        """Return how much of a cap is used, and the requests of unknown price."""
        if cap.period is Period.DAY:
            spent, begun = self._ledger.of_day(day), len(self._begun)
        else:
            spent = self._ledger.of_conversation(talk)
            begun = self._begun_in.get(talk, 0)
        return cap.measure(spent, begun), spent.unpriced

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count what a request took, also one that was cancelled."""
        talk = self._begun.pop(record.request_id, None)
        if talk is not None:
            self._begun_in[talk] -= 1
            if not self._begun_in[talk]:
                del self._begun_in[talk]
        if self._caps and record.is_of_client:
            entry = make_entry(record, self._clock(), self._price_of)
            spent = spending_of(entry)
            if spent != Spent():
                self._ledger.add(day_of(entry.started), record.conversation, spent)

    async def status(self) -> Sequence[StatusRow]:
        """Return the caps and what is used of them."""
        if not self._caps:
            return ()
        day = day_of(self._clock())
        await self._ledger.look_up(day, "")
        unpriced = self._ledger.of_day(day).unpriced
        rows: list[StatusRow] = [
            cap.meter(
                self._measure(cap, day, "")[0] if cap.period is Period.DAY else None,
                unpriced,
            )
            for cap in self._caps
        ]
        return rows if self._journals else [*rows, _UNCOUNTED]

    def _warn(
        self, near: list[tuple[Cap, Hashable, str]], *, shown: bool
    ) -> tuple[str, ...]:
        """Warn once of each cap: in the log, and where the user sees it."""
        warnings: list[str] = []
        for cap, of, warning in near:
            if _is_new(self._logged, (cap, of)):
                _log.warning("%s", warning)
            if shown and _is_new(self._told, (cap, of)):
                warnings.append(warning)
        return tuple(warnings)


def _is_new(known: set[tuple[Cap, Hashable]], what: tuple[Cap, Hashable]) -> bool:
    """Remember something; tell whether it was unknown."""
    if what in known:
        return False
    if len(known) >= _MOST_TOLD:
        known.clear()
    known.add(what)
    return True
