"""Steps from older versions of the database to the newest one.

A new version of the schema is a new row of `MIGRATIONS`, the new text in `schema.py`
and its `VERSION`. Rules that keep users' data safe:

- All steps of one start run in a single transaction, so a kill at any moment leaves
  the old version or the new one. `PRAGMA user_version` is part of the transaction.
- Steps never use `executescript`, which would commit what is open.
- Foreign keys are off while steps run, because a table can then be built anew and
  renamed; they are checked before the commit.
- The steps are first tried on empty tables of the same form (`rehearse`). A database
  that lacks a table is damaged, and is refused before anything in it changes.
- Released steps are never edited: databases of every older version still need them.

The lexical index has a version of its own (`recovery.INDEX_VERSION`) and needs no
steps: each blob notes the version that indexed it, and older ones are indexed again.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from byok.index.store.schema import VERSION, missing_columns


class Migration(NamedTuple):
    """The step to version `to` from the one before; `change` runs in a transaction."""

    to: int
    change: Callable[[sqlite3.Connection], None]


def _sql(*statements: str) -> Callable[[sqlite3.Connection], None]:
    def change(db: sqlite3.Connection) -> None:
        for statement in statements:
            db.execute(statement)

    return change


MIGRATIONS = (
    Migration(
        2,
        _sql(
            "ALTER TABLE killer RENAME TO parser_crasher",
            "ALTER TABLE blob ADD COLUMN index_version INTEGER NOT NULL DEFAULT 0",
            "UPDATE blob SET index_version = coalesce("
            "(SELECT value FROM meta WHERE key = 'index_version'), 0)",
        ),
    ),
)


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of a database, 0 for one that is not byok's."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def rehearse(db: sqlite3.Connection) -> bool:
    """Tell whether `migrate` would turn this database into the newest schema.

    The steps run on empty tables in memory. Only the definitions of the tables are
    read.

    Raises:
        sqlite3.DatabaseError: not even those can be read.
    """
    definitions = db.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        try:
            for (definition,) in definitions:
                empty.execute(definition)
            _run_steps(empty, version_of(db))
        except sqlite3.OperationalError:  # such as: no such table
            return False
        return not missing_columns(empty)


def migrate(db: sqlite3.Connection) -> None:
    """Bring a database to the newest version, in one transaction.

    Raises:
        sqlite3.Error: it stays as it was.
    """
    db.execute("PRAGMA foreign_keys = OFF")  # has no effect inside a transaction
    try:
        db.execute("BEGIN IMMEDIATE")
        try:
            before = _dangling_rows(db)  # harmless until now, so no reason to refuse
            _run_steps(db, version_of(db))
            if _dangling_rows(db) > before:
                raise sqlite3.IntegrityError("a step left rows that refer to none")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    finally:
        db.execute("PRAGMA foreign_keys = ON")


def _dangling_rows(db: sqlite3.Connection) -> int:
    return len(db.execute("PRAGMA foreign_key_check").fetchall())


def _run_steps(db: sqlite3.Connection, version: int) -> None:
    for step in MIGRATIONS:
        if step.to > version:
            step.change(db)
    db.execute(f"PRAGMA user_version = {VERSION}")
