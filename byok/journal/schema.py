"""The tables of the journal, its version, and the steps from older versions.

A new version is a new row of `MIGRATIONS`, the new text of `CREATE` and its `VERSION`.
All steps run in one transaction with the number of the version, so a kill leaves the
old version or the new one. Released steps are never edited.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from byok.journal.entry import JournalEntry

VERSION = 1
APPLICATION = 0x62796F6B  # marks the file as byok's: "byok" in ASCII
CREATE = (
    """CREATE TABLE request (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL,
    started REAL NOT NULL,
    seconds REAL NOT NULL,
    client TEXT NOT NULL,
    conversation TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model_asked TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_byte REAL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_written_tokens INTEGER,
    cost REAL,
    repairs INTEGER NOT NULL,
    dropped_calls INTEGER NOT NULL,
    notices INTEGER NOT NULL,
    prompt TEXT NOT NULL,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT NOT NULL,
    error_class TEXT NOT NULL
)""",
    "CREATE INDEX request_started ON request (started)",
    "CREATE INDEX request_conversation ON request (conversation, started) "
    "WHERE conversation <> ''",
)


class JournalStep(NamedTuple):
    """The step to version `to` from the one before."""

    to: int
    statements: Sequence[str]


MIGRATIONS: tuple[JournalStep, ...] = ()


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a journal, 0 for an empty file.

    Raises:
        sqlite3.DatabaseError: it is no database, or another program's.
    """
    owner, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    if owner == APPLICATION:
        return version
    if owner or version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise sqlite3.DatabaseError("it belongs to another program")
    return 0


def check_columns(db: sqlite3.Connection) -> None:
    """Check that every column is there.

    Raises:
        sqlite3.DatabaseError: one is missing.
    """
    there = {row[1] for row in db.execute("PRAGMA table_info(request)")}
    if missing := {"id", *JournalEntry._fields} - there:
        raise sqlite3.DatabaseError(f"it lacks {', '.join(sorted(missing))}")


def migrate(
    db: sqlite3.Connection,
    steps: Sequence[JournalStep] = MIGRATIONS,
    newest: int = VERSION,
) -> None:
    """Create the tables, or bring those of an older version to the newest.

    Raises:
        sqlite3.Error: everything stays as it was.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        version = version_of(db)
        older = [step for step in steps if step.to > version]
        for step in older if version else [JournalStep(newest, CREATE)]:
            for statement in step.statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {newest}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
