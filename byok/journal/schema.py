"""The tables of the journal, its version, and the steps from older versions.

A new version is a new row of `MIGRATIONS`, the new text of `CREATE` and its `VERSION`.
All steps run in one transaction with the number of the version, so a kill leaves the
old version or the new one. Released steps are never edited. Who reads a file before its
writer has brought it to the newest version sees the new columns with their defaults.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from byok.journal.entry import JournalEntry

VERSION = 2
# What was mended on a request's way. The index holds rows that fulfil exactly these
# words, so queries must use them too.
MENDED = (
    "(repairs > 0 OR dropped_calls > 0 OR notices > 0 OR loop <> '' OR attempts > 1)"
)
_INDEXES_2 = (
    "CREATE INDEX request_failed ON request (started, error, upstream, model) "
    "WHERE outcome = 'failed'",
    "CREATE INDEX request_mended ON request (started) WHERE (repairs > 0 "
    "OR dropped_calls > 0 OR notices > 0 OR loop <> '' OR attempts > 1)",
    "CREATE INDEX request_model ON request (upstream, model, started) "
    "WHERE model <> ''",
)
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
    error_class TEXT NOT NULL,
    tool_calls TEXT NOT NULL DEFAULT '',
    loop TEXT NOT NULL DEFAULT '',
    prompt_change TEXT NOT NULL DEFAULT ''
)""",
    "CREATE INDEX request_started ON request (started)",
    "CREATE INDEX request_conversation ON request (conversation, started) "
    "WHERE conversation <> ''",
    *_INDEXES_2,
)


class JournalStep(NamedTuple):
    """The step to version `to` from the one before.

    `columns` are those that it adds, with the SQL of what older rows have in them.
    """

    to: int
    statements: Sequence[str]
    columns: Mapping[str, str] = MappingProxyType({})


MIGRATIONS: tuple[JournalStep, ...] = (
    JournalStep(
        2,
        (
            "ALTER TABLE request ADD COLUMN tool_calls TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE request ADD COLUMN loop TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE request ADD COLUMN prompt_change TEXT NOT NULL DEFAULT ''",
            *_INDEXES_2,
        ),
        MappingProxyType({"tool_calls": "''", "loop": "''", "prompt_change": "''"}),
    ),
)


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a journal, 0 for an empty file.

    Raises:
        sqlite3.DatabaseError: it is no database, or another program's.
    """
    owner, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    try:
        table = db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except UnicodeDecodeError as error:  # in SQLite's message, which quotes the file
        raise sqlite3.DatabaseError("malformed database schema") from error
    if owner == APPLICATION and version > 0:
        return version
    if owner or version or table:
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


def show_requests(
    db: sqlite3.Connection, version: int, hint: str = "", where: str = "1"
) -> None:
    """Let a connection that only reads see the requests as this version has them.

    `hint` and `where` are words of SQL for those of the file.

    Raises:
        sqlite3.DatabaseError: it cannot be read.
    """
    added = [
        f"{default} AS {name}"
        for step in MIGRATIONS
        if step.to > version
        for name, default in step.columns.items()
    ]
    columns = ", ".join(("*", *added))
    # A name is looked for among temporary views first, which are not in the file.
    source = f"SELECT {columns} FROM main.request {hint}"  # noqa: S608 - our own words
    db.execute(f"CREATE TEMP VIEW request AS SELECT * FROM ({source}) WHERE {where}")  # noqa: S608


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
