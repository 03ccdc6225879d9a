"""Caps: requests beyond them are refused, all others are counted.

A request counts when it begins, so a cap on requests is exact. Its tokens and cost are
known at its end: so if a cap on tokens or dollars is reached while several requests
run, all of them finish, and exceed the cap, at most `limits.streams` of them.
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
from byok.features.cost import PriceOf, no_price, write_cost
from byok.features.journal.entry import JournalEntry, make_entry
from byok.features.journal.requests import highest_number
from byok.features.journal.usage import (
    JournalSums,
    day_span,
    sum_conversation,
    sum_period,
)
from byok.features.settings import CapSettings, JournalSettings
from byok.features.status import Meter, StatusLine, StatusRow

_log = logging.getLogger(__name__)
_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")
_NOTHING = JournalSums()
CAP_REACHED = "cap_reached"
_WARNING_SHARE = 0.8  # of a cap, from which on the user is warned
_MAX_DAYS = 32
_MAX_CONVERSATIONS = 5000
_MAX_WARNINGS = 1000  # that are remembered
_UNCOUNTED = StatusLine(
    "counted since the start of byok only, as the journal is off", "caps.uncounted"
)


def spending_of(entry: JournalEntry) -> JournalSums:
    """Return the spending of one request by the rules of `journal/usage.py`."""
    return JournalSums(
        1 if entry.model and entry.attempts else 0,
        (entry.input_tokens or 0) + (entry.output_tokens or 0),
        entry.cost or 0.0,
        1 if entry.model and entry.cost is None else 0,
    )


class _Account(Struct):
    """The spending of earlier runs, None until it was looked up, and of this run."""

    earlier: JournalSums | None = None
    own: JournalSums = _NOTHING

    @property
    def total(self) -> JournalSums:
        return self.own if self.earlier is None else self.earlier.plus(self.own)


class Ledger:
    """The spending of each day and each conversation; for the event loop.

    Earlier runs and this run are summed separately, so nothing counts twice: of the
    journal, only the entries from before the start of this run count. Requests of this
    run are added in memory when they end. So caps hold although the journal is written
    later, or not at all. The constructor blocks for a millisecond, so that no request
    ends meanwhile. Of too many conversations, the least recently used is forgotten, and
    read from the journal when it continues.
    """

    def __init__(
        self, journal: Path, max_conversations: int = _MAX_CONVERSATIONS
    ) -> None:
        self._journal = journal
        self._max_conversations = max_conversations
        self._days = BoundedMap[date, _Account](_MAX_DAYS)
        self._conversations = BoundedMap[str, _Account](max_conversations)
        self._look_up_lock = asyncio.Lock()
        self._has_warned = False
        # The number of the last entry of earlier runs.
        self._last = self._try_to_read(partial(highest_number, journal)) or 0

    async def look_up(self, day: date, conversation: str) -> None:
        """Look up the spending of earlier runs; reads the journal in a thread."""
        if not self._lacks(day, conversation):
            return
        async with self._look_up_lock:
            # If the account of a conversation was forgotten, the entries of this run
            # are read from the journal, too.
            is_complete = self._is_complete(conversation)
            account = _account_of(self._days, day)
            if account.earlier is None:
                read = partial(sum_period, self._journal, *day_span(day), self._last)
                sums = await asyncio.to_thread(self._try_to_read, read)
                account.earlier = sums or _NOTHING
            if not conversation:
                return
            account = _account_of(self._conversations, conversation)
            if account.earlier is None:
                last = self._last if is_complete else None
                read = partial(sum_conversation, self._journal, conversation, last)
                sums = await asyncio.to_thread(self._try_to_read, read)
                account.earlier = sums or _NOTHING

    def add(self, day: date, conversation: str, spent: JournalSums) -> None:
        """Add the spending of a request that has ended."""
        account = _account_of(self._days, day)
        account.own = account.own.plus(spent)
        if conversation and self._is_complete(conversation):
            account = _account_of(self._conversations, conversation)
            account.own = account.own.plus(spent)

    def of_day(self, day: date) -> JournalSums:
        """Return the spending of a day, as far as it was looked up."""
        return _account_of(self._days, day).total

    def of_conversation(self, conversation: str) -> JournalSums:
        """Return that of a conversation, as far as it was looked up; "" has none."""
        if not conversation:
            return _NOTHING
        return _account_of(self._conversations, conversation).total

    def _lacks(self, day: date, conversation: str) -> bool:
        both = self._days.get(day), self._conversations.get(conversation)
        accounts = both if conversation else both[:1]
        return any(account is None or account.earlier is None for account in accounts)

    def _is_complete(self, conversation: str) -> bool:
        """Tell whether the account of a conversation has all spending of this run."""
        is_full = len(self._conversations) >= self._max_conversations
        return conversation in self._conversations or not is_full

    def _try_to_read(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except (CannotStart, OSError) as error:
            level = logging.DEBUG if self._has_warned else logging.WARNING
            _log.log(level, "caps count from now on, without earlier runs: %s", error)
            self._has_warned = True
            return None


def _account_of(accounts: BoundedMap[_K, _Account], key: _K) -> _Account:
    """Return the account of a key, a new one if there is none."""
    if (account := accounts.get(key)) is None:
        account = accounts[key] = _Account()
    return account


def day_of(seconds: float) -> date:
    """Return the day of a time since 1970, by this machine's clock."""
    return datetime.fromtimestamp(seconds).date()


class Unit(StrEnum):
    """The unit of a cap."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DOLLARS = "usd"


class Period(StrEnum):
    """The scope of a cap."""

    DAY = "day"
    CONVERSATION = "conversation"


class Cap(NamedTuple):
    """A limit of the user: no request begins once `most` of the `unit` is used."""

    unit: Unit
    period: Period
    most: float

    @property
    def name(self) -> str:
        """The key in the settings."""
        return f"{self.unit}_per_{self.period}"

    def measure(self, spent: JournalSums, running: int = 0) -> float:
        """Return how much of the cap is used; `running` requests are not in `spent`."""
        match self.unit:
            case Unit.REQUESTS:
                return spent.requests + running
            case Unit.TOKENS:
                return spent.tokens
            case Unit.DOLLARS:
                return spent.dollars

    def is_near(self, used: float) -> bool:
        """Tell whether the user should be warned."""
        return used >= _WARNING_SHARE * self.most

    def describe(self, used: float, unpriced: int = 0) -> str:
        """Write how much is used, and how many requests are not included."""
        if self.unit is Unit.DOLLARS:
            comma = "," if unpriced else ""
            amounts = f"{write_cost(used, unpriced)}{comma} of ${self.most:,.2f}"
        else:
            amounts = f"{used:,.0f} of {self.most:,.0f} {self.unit}"
        is_day = self.period is Period.DAY
        return f"{amounts} today" if is_day else f"{amounts} in this conversation"

    def warning(self, used: float, unpriced: int = 0) -> str:
        """Return the warning that the cap is near."""
        return (
            f"byok's cap is near: {self.describe(used, unpriced)}. Beyond it no model "
            f"is asked ({self.name} under [caps] in the settings)."
        )

    def error(self, used: float, unpriced: int = 0) -> BadRequest:
        """Return the refusal of a request, with a status that no SDK retries."""
        alternative = (
            "wait until midnight"
            if self.period is Period.DAY
            else "begin a new conversation"
        )
        return BadRequest(
            f"A cap of your settings is reached: {self.describe(used, unpriced)}.",
            hint=f"Raise {self.name} under [caps] in config.toml, which counts at "
            f"once, or {alternative}. byok usage shows what was asked.",
            code=CAP_REACHED,
            status=402,
        )

    def meter(self, used: float | None, unpriced: int) -> Meter:
        """Return the meter of the cap for displays."""
        in_dollars = self.unit is Unit.DOLLARS
        return Meter(self.name, used, self.most, in_dollars, unpriced)


def list_caps(settings: CapSettings) -> tuple[Cap, ...]:
    """Return the caps that are set."""
    pairs = ((unit, period) for period in Period for unit in Unit)
    caps = (Cap(u, p, getattr(settings, f"{u}_per_{p}")) for u, p in pairs)
    return tuple(cap for cap in caps if cap.most)


class CapKeeper(Feature):
    """Admits requests to models, and counts their spending."""

    def __init__(self, site: Site) -> None:
        """Set up without caps; the journal is read only for caps."""
        self._journal = site.paths.journal
        self._clock = site.clock
        self._caps: tuple[Cap, ...] = ()
        self._price_of: PriceOf = no_price
        self._has_journal = False
        self._ledger: Ledger | None = None  # None without caps
        # The day and conversation of each running request, and the number in each.
        self._running: dict[str, tuple[date, str]] = {}
        self._running_in: Counter[Hashable] = Counter()
        self._shown = SaidOnce(_MAX_WARNINGS, forgets=True)
        self._logged = SaidOnce(_MAX_WARNINGS, forgets=True)

    def configure(self, supplies: Supplies, /) -> None:
        """Use these caps and prices from now on."""
        settings = supplies.settings
        caps = list_caps(settings.section(CapSettings))
        had_caps = self._ledger is not None
        has_journal = settings.section(JournalSettings).keep_days > 0
        if not caps:
            self._ledger = None
        elif not had_caps:
            self._ledger = Ledger(self._journal)
        if caps and not has_journal and (self._has_journal or not had_caps):
            _log.warning(
                "the journal is off (journal.keep_days), so after a restart caps do "
                "not know what was spent before"
            )
        self._caps, self._price_of = caps, supplies.price_of
        self._has_journal = has_journal

    def read_again(self) -> None:
        """Read the journal again, to which the previous daemon has written."""
        if self._ledger is not None and self._has_journal:
            self._ledger = Ledger(self._journal)

    async def admit(self, asking: Asking, /) -> Verdict:
        """Count a request that begins, or refuse it."""
        record = asking.record
        ledger = self._ledger
        if ledger is None or record.request_id in self._running:
            return PASS
        day, conversation = day_of(self._clock()), record.conversation
        await ledger.look_up(day, conversation)
        price = self._price_of(asking.upstream, asking.model)
        is_free = price is not None and price.is_free
        spent = {
            Period.DAY: (day, ledger.of_day(day)),
            Period.CONVERSATION: (conversation, ledger.of_conversation(conversation)),
        }
        warnings: list[tuple[Cap, Hashable, str]] = []
        for cap in self._caps:
            scope, sums = spent[cap.period]
            if not scope or (is_free and cap.unit is Unit.DOLLARS):
                continue
            used = cap.measure(sums, self._running_in[scope])
            if used >= cap.most:
                return Verdict(cap.error(used, sums.unpriced))
            used += cap.unit is Unit.REQUESTS  # this request
            if cap.is_near(used):
                warnings.append((cap, scope, cap.warning(used, sums.unpriced)))
        self._running[record.request_id] = (day, conversation)
        self._running_in.update((day, conversation))
        return Verdict(notices=self._warn(warnings, is_shown=asking.shows_notices))

    def request_finished(self, record: RequestRecord, /) -> None:
        """Count the spending of a request, also of a cancelled one."""
        for scope in self._running.pop(record.request_id, ()):
            self._running_in[scope] -= 1
            if not self._running_in[scope]:
                del self._running_in[scope]
        if self._ledger is not None and record.is_of_client:
            entry = make_entry(record, self._clock(), self._price_of)
            spent = spending_of(entry)
            if spent != _NOTHING:
                self._ledger.add(day_of(entry.started), record.conversation, spent)

    async def status(self) -> Sequence[StatusRow]:
        """Return a meter for each cap."""
        ledger = self._ledger
        if ledger is None:
            return ()
        day = day_of(self._clock())
        await ledger.look_up(day, "")
        sums, running = ledger.of_day(day), self._running_in[day]
        rows: list[StatusRow] = [
            cap.meter(
                cap.measure(sums, running) if cap.period is Period.DAY else None,
                sums.unpriced,
            )
            for cap in self._caps
        ]
        return rows if self._has_journal else [*rows, _UNCOUNTED]

    def _warn(
        self, warnings: list[tuple[Cap, Hashable, str]], *, is_shown: bool
    ) -> tuple[str, ...]:
        """Log each warning once; return those that the user has not seen yet."""
        notices: list[str] = []
        for cap, scope, warning in warnings:
            if self._logged.is_new((cap, scope)):
                _log.warning("%s", warning)
            if is_shown and self._shown.is_new((cap, scope)):
                notices.append(warning)
        return tuple(notices)
