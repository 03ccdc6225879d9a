"""What was spent by day and by conversation, by earlier runs and by this one.

Both parts are apart, so nothing counts twice: of the journal only those entries count
that were there at the first look, and from then on requests are added in memory when
they end. So caps hold although the journal is written later, or not at all.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from byok.errors import CannotStart
from byok.journal.entry import JournalEntry
from byok.journal.reading import highest_number
from byok.journal.sums import JournalSums, sum_conversation, sum_period

T = TypeVar("T")
_log = logging.getLogger(__name__)
_MOST_DAYS = 32
_MOST_CONVERSATIONS = 5000


class Spent(NamedTuple):
    """Sums of requests; `unpriced` are those whose cost is not among the `dollars`."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.dollars + other.dollars,
            self.unpriced + other.unpriced,
        )


def spending_of(entry: JournalEntry) -> Spent:
    """Return what one request spent; the same rules as `journal/sums.py`."""
    return Spent(
        1 if entry.model and entry.attempts else 0,
        (entry.input_tokens or 0) + (entry.output_tokens or 0),
        entry.cost or 0.0,
        1 if entry.model and entry.cost is None else 0,
    )


_NOTHING = Spent()


@dataclass(slots=True)
class _Account:
    """`before` is what earlier runs spent, None as long as it was not looked up."""

    before: Spent | None = None
    own: Spent = _NOTHING

    @property
    def total(self) -> Spent:
        return self.own if self.before is None else self.before.plus(self.own)


class Ledger:
    """What each day and each conversation has spent; for the event loop.

    Of too many conversations, the least recently used is forgotten; the journal
    knows it if it goes on.
    """

    def __init__(self, journal: Path, most: int = _MOST_CONVERSATIONS) -> None:
        self._journal = journal
        self._most = most
        self._last: int | None = None  # the highest number of earlier runs
        self._days: dict[date, _Account] = {}
        self._conversations: dict[str, _Account] = {}
        self._forgot = False
        self._looking = asyncio.Lock()
        self._told = False

    def begin(self) -> None:
        """Take the first look now: what the journal does not have yet, is added here.

        Blocks for a millisecond, so that no request ends in between.
        """
        self._last = self._try(partial(highest_number, self._journal)) or 0

    async def look_up(self, day: date, conversation: str) -> None:
        """Look up what earlier runs spent; reads the journal in a thread."""
        if not self._lacks(day, conversation):
            return
        async with self._looking:
            if self._last is None:
                highest = partial(highest_number, self._journal)
                self._last = await self._read(highest) or 0
            # What this run wrote of a conversation counts where it was forgotten here.
            known = conversation in self._conversations or not self._forgot
            account = self._day(day)
            if account.before is None:
                sums = partial(sum_period, self._journal, *bounds_of(day), self._last)
                account.before = await self._find(sums)
            if conversation:
                await self._look_up_conversation(conversation, known=known)

    async def _look_up_conversation(self, conversation: str, *, known: bool) -> None:
        account = self._conversation(conversation)
        if account.before is None:
            last = self._last if known else None
            sums = partial(sum_conversation, self._journal, conversation, last)
            account.before = await self._find(sums)

    def add(self, day: date, conversation: str, spent: Spent) -> None:
        """Add a request that has ended; before the first look, the journal has it."""
        if self._last is None:
            return
        account = self._day(day)
        account.own = account.own.plus(spent)
        if conversation and (conversation in self._conversations or not self._forgot):
            account = self._conversation(conversation)
            account.own = account.own.plus(spent)

    def of_day(self, day: date) -> Spent:
        """Return what a day has spent, as far as it was looked up."""
        return self._day(day).total

    def of_conversation(self, conversation: str) -> Spent:
        """Return what a conversation has spent, likewise; nothing without an id."""
        return self._conversation(conversation).total if conversation else _NOTHING

    def _lacks(self, day: date, conversation: str) -> bool:
        if self._day(day).before is None:
            return True
        return bool(conversation) and (
            conversation not in self._conversations
            or self._conversation(conversation).before is None
        )

    def _day(self, day: date) -> _Account:
        account = self._days.setdefault(day, _Account())
        if len(self._days) > _MOST_DAYS:
            del self._days[next(iter(self._days))]
        return account

    def _conversation(self, conversation: str) -> _Account:
        account = self._conversations.pop(conversation, None) or _Account()
        self._conversations[conversation] = account
        if len(self._conversations) > self._most:
            del self._conversations[next(iter(self._conversations))]
            self._forgot = True
        return account

    async def _find(self, read: Callable[[], JournalSums]) -> Spent:
        return Spent(*(await self._read(read) or JournalSums()))

    async def _read(self, read: Callable[[], T]) -> T | None:
        return await asyncio.to_thread(self._try, read)

    def _try(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except (CannotStart, OSError) as error:
            level = logging.DEBUG if self._told else logging.WARNING
            _log.log(level, "caps count from now on, without earlier runs: %s", error)
            self._told = True
            return None


def day_of(seconds: float) -> date:
    """Return the day of a time since 1970, by this machine's clock."""
    return datetime.fromtimestamp(seconds).date()


def bounds_of(day: date) -> tuple[float, float]:
    """Return when a day begins and ends, in seconds since 1970; some have 23 hours."""
    midnight = datetime.combine(day, datetime.min.time())
    return midnight.timestamp(), (midnight + timedelta(days=1)).timestamp()
