"""The journal's file, for its one writer: only a help, and never lost as a whole."""

import logging
import sqlite3
from functools import partial
from pathlib import Path

from byok.features.journal.entry import JournalEntry
from byok.features.journal.reader import read_whole
from byok.features.journal.rows import whole_row
from byok.features.journal.schema import JOURNAL
from byok.storage.database import HelpDatabase

_log = logging.getLogger(__name__)
_COLUMNS = ", ".join(("id", *JournalEntry._fields))
_MARKS = ", ".join("?" * (1 + len(JournalEntry._fields)))
_COPY = f"INSERT OR IGNORE INTO request ({_COLUMNS}) VALUES ({_MARKS})"  # noqa: S608 - our own words


def journal_file(path: Path) -> HelpDatabase:
    """Return the journal for the only process that writes it.

    Of a damaged one, what can be read is copied to the new one.
    """
    failure = "requests are not written to the journal"
    return HelpDatabase(path, JOURNAL, failure, salvage_rows)


def salvage_rows(aside: Path, db: sqlite3.Connection) -> None:
    """Copy what is whole of a journal that was set aside into a new one."""
    # From both ends, as rows behind a damaged page cannot be reached from before it.
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
        sqlite3.DatabaseError: one is damaged.
    """
    damaged = f"({whole_row()}) IS NOT TRUE"
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
