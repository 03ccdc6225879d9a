"""The thread that writes the journal, in batches, and deletes expired requests.

It must never delay or fail an answer. So `add` only appends to a queue of limited
length, and requests that cannot be written are counted and dropped: because the disk is
full, the file is locked or cannot be created. The log says so once.
"""

import logging
import sqlite3
import time
from collections import deque
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from msgspec import Struct

from byok.core.record import RequestRecord
from byok.features.base import Feature, Number, Site, Supplies
from byok.features.cost import PriceOf, no_price
from byok.features.journal.entry import JournalEntry, hide_secrets, make_entry
from byok.features.journal.reader import WHOLE_ROW, read_whole
from byok.features.journal.schema import JOURNAL
from byok.features.settings import JournalSettings
from byok.features.status import StatusLine
from byok.storage.database import HelpDatabase, expired_before, read_pragma, transaction
from byok.storage.worker import Worker

_log = logging.getLogger(__name__)
STEP = 500  # requests, or pages of the file
_SPARE_PAGES = 256  # free pages that stay, as they are soon used again
_COLUMNS = ", ".join(("id", *JournalEntry._fields))
_MARKS = ", ".join("?" * (1 + len(JournalEntry._fields)))
_COPY = f"INSERT OR IGNORE INTO request ({_COLUMNS}) VALUES ({_MARKS})"  # noqa: S608 - our own words
_INSERT = (
    f"INSERT INTO request ({', '.join(JournalEntry._fields)}) "  # noqa: S608 - our own names
    f"VALUES ({', '.join('?' * len(JournalEntry._fields))})"
)
_OLD = """DELETE FROM request WHERE id IN (
    SELECT id FROM request WHERE started < ? ORDER BY started LIMIT ?)"""
_OLDEST = "DELETE FROM request WHERE id IN (SELECT id FROM request ORDER BY id LIMIT ?)"


def tidy(
    db: sqlite3.Connection, *, now: float, keep_days: int, most_bytes: int
) -> bool:
    """Delete a small step of rows, so that writers hardly wait; tell if more remain.

    First requests are deleted that are older than `keep_days` at `now`, in seconds
    since 1970, then the oldest while the content is larger than `most_bytes`. The file
    becomes smaller. A clock that is ahead for less than a day costs a week of the
    journal, and not all of it: see `expired_before`.
    """
    limit = expired_before(db, "request", "started", now, keep_days)
    deleted = db.execute(_OLD, (limit, STEP)).rowcount
    if deleted < STEP and _content_bytes(db) > most_bytes:
        deleted = db.execute(_OLDEST, (STEP,)).rowcount
    free = read_pragma(db, "freelist_count")
    if free > _SPARE_PAGES:
        # `execute` would free a single page.
        db.executescript(f"PRAGMA incremental_vacuum({STEP})")
    return deleted == STEP or free > _SPARE_PAGES + STEP


def _content_bytes(db: sqlite3.Connection) -> int:
    pages = read_pragma(db, "page_count") - read_pragma(db, "freelist_count")
    return pages * read_pragma(db, "page_size")


def journal_file(path: Path) -> HelpDatabase:
    """Return the journal for the only process that writes it.

    A damaged one is replaced by a new one with its undamaged requests.
    """
    failure = "requests are not written to the journal"
    return HelpDatabase(path, JOURNAL, failure, salvage_rows)


def salvage_rows(aside: Path, db: sqlite3.Connection) -> None:
    """Copy the undamaged requests of a journal that was set aside into a new one."""
    # From both ends, because a damaged page blocks the way to the rows after it.
    for order in ("id", "id DESC"):
        try:
            read_whole(aside, partial(_copy, db, order))
            break
        except sqlite3.DatabaseError as failure:
            _log.debug("reading %s ended early: %s", aside, failure)
    (count,) = db.execute("SELECT count(*) FROM request").fetchone()
    if count:
        _log.warning("%d requests of the damaged journal are in the new one", count)


def check_rows(db: sqlite3.Connection) -> None:
    """Check that all requests can be read, which takes a second for 200,000.

    Raises:
        sqlite3.DatabaseError: at least one is damaged.
    """
    damaged = f"({WHOLE_ROW}) IS NOT TRUE"
    query = f"SELECT count(*) FROM request NOT INDEXED WHERE {damaged}"  # noqa: S608 - our own words
    (count,) = db.execute(query).fetchone()
    if count:
        raise sqlite3.DatabaseError(f"{count} requests are damaged")


def _copy(db: sqlite3.Connection, order: str, damaged: sqlite3.Connection) -> None:
    """Copy requests until one cannot be read."""
    query = f"SELECT {_COLUMNS} FROM request ORDER BY {order}"  # noqa: S608 - our own words
    db.execute("BEGIN IMMEDIATE")
    try:
        db.executemany(_COPY, damaged.execute(query))
    finally:
        db.execute("COMMIT")


class WriterLimits(Struct, frozen=True):
    """The limits of the writer; times in seconds.

    The queue has at most `waiting` entries. The first one is written at once; after
    that, entries are collected for `gather` and written as a batch. Old requests are
    deleted every `tidy`, with a `pause` between two steps. Closing waits for
    `last_words`.
    """

    waiting: int = 2000
    gather: float = 0.5
    tidy: float = 3600.0
    pause: float = 0.05
    last_words: float = 3.0
    most_bytes: int = 200_000_000


def _insert(db: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> bool:
    """Write rows, all or none; return True, because `HelpDatabase.use` may fail."""
    with transaction(db):
        db.executemany(_INSERT, rows)
    return True


class JournalKeeper(Feature):
    """Makes entries of finished requests of clients; its thread writes them.

    Requests without the token, and those of byok's own commands, are not recorded.
    """

    def __init__(self, site: Site, limits: WriterLimits | None = None) -> None:
        """Set up; the file is opened when the first request has ended."""
        self._log_file = site.paths.log
        self._clock = site.clock
        self._price_of: PriceOf = no_price
        self._keep_days = 0
        self._keeps_folders = True
        self._refused = 0  # entries that found the queue full, or the journal closed
        self._failed = 0  # entries that could not be written
        self._redactor = site.redactor
        self._limits = limits or WriterLimits()
        self._waiting: deque[JournalEntry] = deque()
        self._is_scheduled = False  # the thread will process the queue
        self._writing = 0  # entries that left the queue, and are not in the file yet
        self._worker = Worker("journal", chore=self._tidy, every=self._limits.tidy)
        self._file = journal_file(site.paths.journal)
        self._is_checked = False
        self._tidy_at = 0.0

    @property
    def lost(self) -> int:
        """The number of requests that could not be written."""
        return self._refused + self._failed

    @property
    def unwritten(self) -> int:
        """The number of requests that are not written yet."""
        return len(self._waiting) + self._writing

    @property
    def numbers(self) -> Sequence[Number]:
        """The number of requests that could not be written."""
        meaning = "Requests that could not be written to the journal."
        return (Number("byok_journal_lost_total", "counter", meaning, self.lost),)

    async def status(self) -> Sequence[StatusLine] | None:
        """Return a warning if requests could not be written."""
        if not self.lost:
            return None
        requests = "1 request" if self.lost == 1 else f"{self.lost:,} requests"
        text = f"{requests} could not be written; why: {self._log_file}"
        return [StatusLine(text, "journal.lost", {"count": self.lost}, warns=True)]

    def configure(self, supplies: Supplies, /) -> None:
        """Use the days for which requests are kept (0: none), and the prices."""
        settings = supplies.settings.section(JournalSettings)
        self._keep_days = settings.keep_days
        self._keeps_folders = settings.folder_names
        self._price_of = supplies.price_of

    def request_finished(self, record: RequestRecord, /) -> None:
        """Add the entry of a request."""
        if self._keep_days and record.is_of_client:
            self.add(make_entry(record, self._clock(), self._price_of))

    def add(self, entry: JournalEntry) -> None:
        """Queue an entry; returns at once. For one thread."""
        if self._worker.is_closed or len(self._waiting) >= self._limits.waiting:
            if not self._refused:
                _log.warning("requests ended faster than the journal could be written")
            self._refused += 1
            return
        self._waiting.append(entry)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._worker.offer(self._write)

    def close(self) -> None:
        """Write the queue; later requests are not recorded. Blocks for seconds."""
        self._worker.close(self._file.close, self._limits.last_words)
        if missing := self.lost + self.unwritten:
            _log.warning("%d requests are missing in the journal", missing)

    # ---- In the thread

    def _write(self) -> None:
        self._is_scheduled = False
        while self._waiting:
            size = min(len(self._waiting), self._limits.waiting)
            self._writing = size
            batch = [self._waiting.popleft() for _ in range(size)]
            if not self._file.use(partial(_insert, rows=self._clean(batch))):
                self._failed += len(batch)
            self._writing = 0
        if not self._is_checked:
            self._is_checked = True
            self._file.use(check_rows)
        self._tidy()
        self._worker.pause(self._limits.gather)

    def _clean(self, batch: Sequence[JournalEntry]) -> list[tuple[object, ...]]:
        """Remove secrets and invalid characters from the texts of clients."""
        # Cached, because the texts of a batch are mostly the same.
        clean = cache(partial(hide_secrets, redactor=self._redactor))
        return [
            entry._replace(
                conversation=clean(entry.conversation),
                model_asked=clean(entry.model_asked),
                model=clean(entry.model),
                tool_calls=clean(entry.tool_calls),
                folder=clean(entry.folder) if self._keeps_folders else "",
            )
            for entry in batch
        ]

    def _tidy(self) -> None:
        """Delete a step of old requests, and schedule the next step."""
        now, limits = time.monotonic(), self._limits
        if now < self._tidy_at or not self._keep_days:
            return
        self._tidy_at = now + limits.tidy
        step = partial(
            tidy,
            now=self._clock(),
            keep_days=self._keep_days,
            most_bytes=limits.most_bytes,
        )
        if self._file.use(step):  # the next step follows the next batch
            self._tidy_at = 0.0
            self._worker.pause(limits.pause)
            self._worker.offer(self._tidy)
