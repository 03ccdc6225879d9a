"""What byok knows of a kind of databases: tables, versions, and how files are treated.

A new version is a new row of `steps`, the new text of `tables` and the new `version`.
Released steps are never edited: databases of every older version still need them.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from functools import cache
from typing import NamedTuple

from msgspec import Struct


class Policy(Enum):
    """How much a file is worth. One that a later byok wrote is left alone by all.

    DATA is nowhere else. It is copied before it is migrated, and may be a link. A file
    that is damaged is set aside and the user is told.

    HELP is missed by nobody at once. A file that is damaged or another program's is set
    aside, and what is whole of it may be kept.

    A CACHE can be made again. A file that is damaged is set aside a few times only, as
    it may be large; another program's is refused.
    """

    DATA = "data"
    HELP = "help"
    CACHE = "cache"

    @property
    def most_aside(self) -> int:
        """How many damaged files may lie beside the one in use."""
        return 3 if self is Policy.CACHE else 9  # each may have gigabytes


class MigrationStep(NamedTuple):
    """The step to version `to` from the one before.

    `change` runs inside a transaction, so it never uses `executescript`, which would
    commit what is open. Foreign keys are off meanwhile, because a table can then be
    built anew and renamed; they are checked before the commit.
    """

    to: int
    change: Callable[[sqlite3.Connection], None]


def sql_step(to: int, *statements: str) -> MigrationStep:
    """Return a step that runs some statements."""

    def change(db: sqlite3.Connection) -> None:
        for statement in statements:
            db.execute(statement)

    return MigrationStep(to, change)


class DatabaseKind(Struct, frozen=True):
    """A kind of databases.

    `tables` is the SQL of a new one, and `version` is kept in `PRAGMA user_version`.
    `application`, unless it is 0, is kept in `PRAGMA application_id`: it proves that
    byok wrote a file. With `notes_end` the table `meta` tells whether a database was
    closed in good order; if not, all its pages are read when it is opened. `pragmas`
    are of the connection that writes. Free pages can be given back if it `shrinks`.
    """

    tables: str
    version: int
    policy: Policy
    pragmas: tuple[str, ...]
    steps: tuple[MigrationStep, ...] = ()
    application: int = 0
    notes_end: bool = False
    shrinks: bool = False

    def create_tables(self, db: sqlite3.Connection) -> None:
        """Make the tables of a new database, in one transaction."""
        if self.shrinks:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before there are tables
        db.executescript(
            f"BEGIN;{self.tables};PRAGMA application_id = {self.application};"
            f"PRAGMA user_version = {self.version};COMMIT"
        )

    def missing_columns(self, db: sqlite3.Connection) -> frozenset[tuple[str, str]]:
        """Return what the newest version has and a database has not: (table, column).

        No check of SQLite finds a damaged name of a table or column.
        """
        return _columns_of(self) - _columns(db)


@cache
def _columns_of(kind: DatabaseKind) -> frozenset[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as new:
        kind.create_tables(new)
        return _columns(new)


def _columns(db: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    sql = "SELECT t.name, c.name FROM main.sqlite_master t, pragma_table_info(t.name) c"
    return frozenset(db.execute(f"{sql} WHERE t.type = 'table'"))
