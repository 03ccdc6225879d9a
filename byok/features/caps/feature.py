"""Caps: requests beyond them are refused, all others are counted.

A request counts when it begins, so a cap on requests is exact. What it takes is known
at its end: so requests that run side by side when a cap on tokens or dollars is reached
all end, and the cap is exceeded by what they take, at most `limits.streams` of them.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from byok.core.bounded import BoundedMap, SaidOnce
from byok.core.errors import BadRequest, CannotStart
from byok.core.record import RequestRecord
from byok.features.base import PASS, Asking, Feature, Site, Supplies, Verdict
from byok.features.caps.settings import CapSettings
from byok.features.cost import PriceOf, no_price, write_cost
from byok.features.journal.entry import JournalEntry, make_entry
from byok.features.journal.reading import highest_number
from byok.features.journal.settings import JournalSettings
from byok.features.journal.usage import (
    JournalSums,
    day_span,
    sum_conversation,
    sum_period,
)
from byok.features.status import Meter, StatusLine, StatusRow

# What was spent by day and by conversation, by earlier runs and by this one.
#
# Both parts are apart, so nothing counts twice: of the journal only those entries count
# that were there at the begin, and from then on requests are added in memory when they
# end. So caps hold although the journal is written later, or not at all.


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
_log = logging.getLogger(__name__)
_MOST_DAYS = 32
_MOST_CONVERSATIONS = 5000


def spending_of(entry: JournalEntry) -> JournalSums:
    """Return what one request spent; the same rules as `features/journal/usage.py`."""
    return JournalSums(
        1 if entry.model and entry.attempts else 0,
        (entry.input_tokens or 0) + (entry.output_tokens or 0),
        entry.cost or 0.0,
        1 if entry.model and entry.cost is None else 0,
    )


_NOTHING = JournalSums()


class _Account(Struct):
    """`before` is what earlier runs spent, None as long as it was not looked up."""

    before: JournalSums | None = None
    own: JournalSums = _NOTHING

    @property
    def total(self) -> JournalSums:
        return self.own if self.before is None else self.before.plus(self.own)


class Ledger:
    """What each day and each conversation has spent; for the event loop.

    What the journal does not have yet at the begin is added here. That blocks for a
    millisecond, so that no request ends in between. Of too many conversations, the
    least recently used is forgotten; the journal knows it if it goes on.
    """

    def __init__(self, journal: Path, most: int = _MOST_CONVERSATIONS) -> None:
        self._journal = journal
        self._most = most
        self._days = BoundedMap[date, _Account](_MOST_DAYS)
        self._conversations = BoundedMap[str, _Account](most)
        self._looking = asyncio.Lock()
        self._told = False
        # The highest number of earlier runs.
        self._last = self._try(partial(highest_number, journal)) or 0

    async def look_up(self, day: date, conversation: str) -> None:
        """Look up what earlier runs spent; reads the journal in a thread."""
        if not self._lacks(day, conversation):
            return
        async with self._looking:
            # What this run wrote of a conversation counts where it was forgotten here.
            known = self._knows(conversation)
            account = _find_account(self._days, day)
            if account.before is None:
                sums = partial(sum_period, self._journal, *day_span(day), self._last)
                account.before = await asyncio.to_thread(self._try, sums) or _NOTHING
            if not conversation:
                return
            account = _find_account(self._conversations, conversation)
            if account.before is None:
                last = self._last if known else None
                sums = partial(sum_conversation, self._journal, conversation, last)
                account.before = await asyncio.to_thread(self._try, sums) or _NOTHING

    def add(self, day: date, conversation: str, spent: JournalSums) -> None:
        """Add a request that has ended."""
        account = _find_account(self._days, day)
        account.own = account.own.plus(spent)
        if conversation and self._knows(conversation):
            account = _find_account(self._conversations, conversation)
            account.own = account.own.plus(spent)

    def of_day(self, day: date) -> JournalSums:
        """Return what a day has spent, as far as it was looked up."""
        return _find_account(self._days, day).total

    def of_conversation(self, conversation: str) -> JournalSums:
        """Return what a conversation has spent, likewise; nothing without an id."""
        if not conversation:
            return _NOTHING
        return _find_account(self._conversations, conversation).total

    def _lacks(self, day: date, conversation: str) -> bool:
        asked = self._days.get(day), self._conversations.get(conversation)
        accounts = asked if conversation else asked[:1]
        return any(account is None or account.before is None for account in accounts)

    def _knows(self, conversation: str) -> bool:
        """Tell whether all that this run spent on a conversation is known here."""
        is_full = len(self._conversations) >= self._most
        return conversation in self._conversations or not is_full

    def _try(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (CannotStart, OSError) as error:
            level = logging.DEBUG if self._told else logging.WARNING
            _log.log(level, "caps count from now on, without earlier runs: %s", error)
            self._told = True
            return None


def _find_account(accounts: BoundedMap[K, _Account], key: K) -> _Account:
    """Return an account, which begins at the first time that it is asked for."""
    if (account := accounts.get(key)) is None:
        account = accounts[key] = _Account()
    return account


def day_of(seconds: float) -> date:
    """Return the day of a time since 1970, by this machine's clock."""
    return datetime.fromtimestamp(seconds).date()


# The caps of the settings, and what is said about them.


CAP_REACHED = "cap_reached"
_SOON = 0.8  # the part of a cap at which the user is told


class Unit(StrEnum):
    """What is counted."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DOLLARS = "usd"


class Period(StrEnum):
    """What the counts belong to."""

    DAY = "day"
    CONVERSATION = "conversation"


class Cap(NamedTuple):
    """A limit of the user's: no request begins once `most` of the `unit` is used."""

    unit: Unit
    period: Period
    most: float

    @property
    def name(self) -> str:
        """The key in the settings."""
        return f"{self.unit}_per_{self.period}"

    def measure(self, spent: JournalSums, begun: int = 0) -> float:
        """Return how much of the cap is used; `begun` are unfinished requests."""
        match self.unit:
            case Unit.REQUESTS:
                return spent.requests + begun
            case Unit.TOKENS:
                return spent.tokens
            case Unit.DOLLARS:
                return spent.dollars

    def is_near(self, used: float) -> bool:
        """Whether the user should know."""
        return used >= _SOON * self.most

    def describe(self, used: float, unpriced: int = 0) -> str:
        """Say how much is used, and how many requests are not in it."""
        if self.unit is Unit.DOLLARS:
            comma = "," if unpriced else ""
            amounts = f"{write_cost(used, unpriced)}{comma} of ${self.most:,.2f}"
        else:
            amounts = f"{used:,.0f} of {self.most:,.0f} {self.unit}"
        is_day = self.period is Period.DAY
        return f"{amounts} today" if is_day else f"{amounts} in this conversation"

    def warning(self, used: float, unpriced: int = 0) -> str:
        """Say that the cap is near."""
        return (
            f"byok's cap is near: {self.describe(used, unpriced)}. Beyond it no model "
            f"is asked ({self.name} under [caps] in the settings)."
        )

    def error(self, used: float, unpriced: int = 0) -> BadRequest:
        """Return the refusal of a request: a status at which no SDK asks again."""
        other = (
            "wait until midnight"
            if self.period is Period.DAY
            else "begin a new conversation"
        )
        return BadRequest(
            f"A cap of your settings is reached: {self.describe(used, unpriced)}.",
            hint=f"Raise {self.name} under [caps] in config.toml, which counts at "
            f"once, or {other}. byok usage shows what was asked.",
            code=CAP_REACHED,
            status=402,
        )

    def meter(self, used: float | None, unpriced: int) -> Meter:
        """Return how much of it is used, for displays."""
        in_dollars = self.unit is Unit.DOLLARS
        return Meter(self.name, used, self.most, in_dollars, unpriced)


def list_caps(settings: CapSettings) -> tuple[Cap, ...]:
    """Return the caps that are set."""
    named = ((unit, period) for period in Period for unit in Unit)
    found = (Cap(u, p, getattr(settings, f"{u}_per_{p}")) for u, p in named)
    return tuple(cap for cap in found if cap.most)


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
        self._ledger: Ledger | None = None  # without caps
        # Day and conversation by request, and how many of these have begun in each.
        self._begun: dict[str, tuple[date, str]] = {}
        self._begun_in: Counter[Hashable] = Counter()
        self._told = SaidOnce(_MOST_TOLD, forgets=True)
        self._logged = SaidOnce(_MOST_TOLD, forgets=True)

    def configure(self, supplies: Supplies, /) -> None:
        """Use these caps and prices from now on."""
        settings = supplies.settings
        caps, had = list_caps(settings.section(CapSettings)), self._ledger is not None
        journals = settings.section(JournalSettings).keep_days > 0
        if not caps:
            self._ledger = None
        elif not had:
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
        if self._ledger is not None and self._journals:
            self._ledger = Ledger(self._journal)

    async def admit(self, asking: Asking, /) -> Verdict:
        """Let a request begin, which counts it, or refuse it."""
        record = asking.record
        ledger = self._ledger
        if ledger is None or record.request_id in self._begun:
            return PASS
        day, talk = day_of(self._clock()), record.conversation
        await ledger.look_up(day, talk)
        price = self._price_of(asking.upstream, asking.model)
        free = price is not None and price.is_free
        spent = {
            Period.DAY: (day, ledger.of_day(day)),
            Period.CONVERSATION: (talk, ledger.of_conversation(talk)),
        }
        near: list[tuple[Cap, Hashable, str]] = []
        for cap in self._caps:
            of, sums = spent[cap.period]
            if not of or (free and cap.unit is Unit.DOLLARS):
                continue
            used = cap.measure(sums, self._begun_in[of])
            if used >= cap.most:
                return Verdict(cap.error(used, sums.unpriced))
            used += cap.unit is Unit.REQUESTS  # this one
            if cap.is_near(used):
                near.append((cap, of, cap.warning(used, sums.unpriced)))
        self._begun[record.request_id] = (day, talk)
        self._begun_in.update((day, talk))
        return Verdict(notices=self._warn(near, shown=asking.shows_notices))

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count what a request took, also one that was cancelled."""
        for of in self._begun.pop(record.request_id, ()):
            self._begun_in[of] -= 1
            if not self._begun_in[of]:
                del self._begun_in[of]
        if self._ledger is not None and record.is_of_client:
            entry = make_entry(record, self._clock(), self._price_of)
            spent = spending_of(entry)
            if spent != _NOTHING:
                self._ledger.add(day_of(entry.started), record.conversation, spent)

    async def status(self) -> Sequence[StatusRow]:
        """Return the caps and what is used of them."""
        ledger = self._ledger
        if ledger is None:
            return ()
        day = day_of(self._clock())
        await ledger.look_up(day, "")
        sums, begun = ledger.of_day(day), self._begun_in[day]
        rows: list[StatusRow] = [
            cap.meter(
                cap.measure(sums, begun) if cap.period is Period.DAY else None,
                sums.unpriced,
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
            if self._logged.is_new((cap, of)):
                _log.warning("%s", warning)
            if shown and self._told.is_new((cap, of)):
                warnings.append(warning)
        return tuple(warnings)
