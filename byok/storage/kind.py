"""A kind of databases: its tables, its versions, and the policy for its files.

A new version needs a new row in `steps`, the new text of `tables` and the new
`version`. Released steps are never edited, as databases of older versions need them.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from functools import cache
from typing import NamedTuple

from msgspec import Struct


class Policy(Enum):
    """How to treat a file that cannot be used. No policy changes a later byok's file.

    DATA exists nowhere else. It is copied before it is migrated, and may be a link. A
    damaged file is set aside, and the user is told.

    HELP is auxiliary: nobody misses it at once. A file that is damaged or another
    program's is set aside, and its intact rows may be copied.

    A CACHE can be built again. A damaged file is set aside only a few times, as it may
    be large; another program's file is refused.
    """

    DATA = "data"
    HELP = "help"
    CACHE = "cache"

    @property
    def max_aside(self) -> int:
        """The maximum number of damaged files beside the one in use."""
        return 3 if self is Policy.CACHE else 9  # each cache may have gigabytes


class MigrationStep(NamedTuple):
    """The migration to version `to` from the version before.

    `change` runs inside a transaction, so it never uses `executescript`, which would
    commit the transaction. Foreign keys are off, so that a table can be built anew and
    renamed, and are checked before the commit.
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

    `tables` is the SQL of a new one, and `version` is in `PRAGMA user_version`.
    `application`, unless it is 0, is in `PRAGMA application_id`, and proves that byok
    wrote the file. With `tracks_clean_close` the table `meta` has whether the database
    was closed cleanly; if not, all pages are checked when it is opened. `pragmas` are
    for the connection that writes. If it `shrinks`, free pages can be released.
    """

    tables: str
    version: int
    policy: Policy
    pragmas: tuple[str, ...]
    steps: tuple[MigrationStep, ...] = ()
    application: int = 0
    tracks_clean_close: bool = False
    shrinks: bool = False

    def create_tables(self, db: sqlite3.Connection) -> None:
        """Create the tables of a new database, in one transaction."""
        if self.shrinks:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before there are tables
        db.executescript(
            f"BEGIN;{self.tables};PRAGMA application_id = {self.application};"
            f"PRAGMA user_version = {self.version};COMMIT"
        )

    def missing_columns(self, db: sqlite3.Connection) -> frozenset[tuple[str, str]]:
        """Return the (table, column) pairs of the newest version that a database lacks.

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
