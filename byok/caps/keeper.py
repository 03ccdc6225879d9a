"""Keeps requests within the caps: refuses those beyond one, counts the others.

A request counts when it begins, so a cap on requests is exact. What it takes is known
at its end: so requests that run side by side when a cap on tokens or dollars is reached
all end, and the cap is exceeded by what they take, at most `limits.streams` of them.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from byok.caps.ledger import Ledger, day_of
from byok.caps.limits import Cap, Period, Unit, list_caps
from byok.caps.spent import Spent, spending_of
from byok.chat import Json
from byok.config.spending_sections import CapSettings
from byok.errors import BadRequest
from byok.journal.cost import PriceOf, no_price
from byok.journal.entry import make_entry
from byok.record import RequestRecord

_log = logging.getLogger(__name__)
_MOST_TOLD = 1000


@dataclass(frozen=True, slots=True)
class Admitted:
    """Whether a request may begin: not with a `refusal`. The user sees `warnings`."""

    refusal: BadRequest | None = None
    warnings: tuple[str, ...] = ()


_FREELY = Admitted()


class CapKeeper:
    """Admits requests to models, and as an observer counts what they took."""

    def __init__(
        self, journal: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Take the journal's file; without caps it is never read."""
        self._journal = journal
        self._clock = clock
        self._caps: tuple[Cap, ...] = ()
        self._price_of: PriceOf = no_price
        self._journals = False
        self._ledger = Ledger(journal)
        self._begun: dict[str, str] = {}  # conversations by request
        self._begun_in: Counter[str] = Counter()
        self._told: set[tuple[Cap, Hashable]] = set()
        self._logged: set[tuple[Cap, Hashable]] = set()

    def configure(
        self, settings: CapSettings, price_of: PriceOf, *, journals: bool
    ) -> None:
        """Use these caps and prices from now on; `journals`: the journal is on."""
        caps, had = list_caps(settings), self._caps
        if caps and not had:
            self._ledger = Ledger(self._journal)
        if caps and not journals and (self._journals or not had):
            _log.warning(
                "the journal is off (journal.keep_days), so after a restart caps do "
                "not know what was spent before"
            )
        self._caps, self._price_of, self._journals = caps, price_of, journals

    def read_again(self) -> None:
        """Count anew from the journal, to which another process has written."""
        if self._caps and self._journals:
            self._ledger = Ledger(self._journal)
            self._ledger.begin()

    async def admit(
        self,
        record: RequestRecord,
        upstream: str,
        model: str,
        *,
        tells: bool = False,
    ) -> Admitted:
        """Let a request begin, which counts it, or refuse it.

        `upstream` and `model` are those that it is for; the answer of one that `tells`
        shows warnings to the user.
        """
        if not self._caps or record.request_id in self._begun:
            return _FREELY
        day, talk = day_of(self._clock()), record.conversation
        await self._ledger.look_up(day, talk)
        price = self._price_of(upstream, model)
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
                return Admitted(cap.error(used, unpriced))
            used += cap.unit is Unit.REQUESTS  # this one
            if cap.is_near(used):
                near.append((cap, of, cap.warning(used, unpriced)))
        self._begun[record.request_id] = talk
        self._begun_in[talk] += 1
        return Admitted(warnings=self._warn(near, tells=tells))

    def _measure(self, cap: Cap, day: date, talk: str) -> tuple[float, int]:
        """Return how much of a cap is used, and the requests of unknown price."""
        if cap.period is Period.DAY:
            spent, begun = self._ledger.of_day(day), len(self._begun)
        else:
            spent = self._ledger.of_conversation(talk)
            begun = self._begun_in.get(talk, 0)
        return cap.measure(spent, begun), spent.unpriced

    def request_started(self, record: RequestRecord, /) -> None:
        """Do nothing until the request ends."""

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

    async def status(self) -> Json:
        """Return the caps and what is used of them, for `byok status`."""
        if not self._caps:
            return {"caps": [], "unpriced": 0, "journal": self._journals}
        day = day_of(self._clock())
        await self._ledger.look_up(day, "")
        rows = [
            cap.report(
                self._measure(cap, day, "")[0] if cap.period is Period.DAY else None
            )
            for cap in self._caps
        ]
        unpriced = self._ledger.of_day(day).unpriced
        return {"caps": rows, "unpriced": unpriced, "journal": self._journals}

    def _warn(
        self, near: list[tuple[Cap, Hashable, str]], *, tells: bool
    ) -> tuple[str, ...]:
        """Warn once of each cap: in the log, and where the user sees it."""
        warnings: list[str] = []
        for cap, of, warning in near:
            if _is_new(self._logged, (cap, of)):
                _log.warning("%s", warning)
            if tells and _is_new(self._told, (cap, of)):
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
