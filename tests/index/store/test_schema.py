"""The schema of a new database."""

import sqlite3
from contextlib import closing

from byok.index.store.schema import VERSION, create_tables, missing_columns


def test_schema_of_a_new_database_is_complete_and_of_the_newest_version() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        assert ("blob", "spans") in missing_columns(db)
        create_tables(db)
        assert missing_columns(db) == set()
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_schema_check_finds_a_missing_table_and_a_renamed_column() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        create_tables(db)
        db.execute("DROP TABLE alias")
        db.execute("ALTER TABLE blob RENAME COLUMN used TO asked")
        db.execute("CREATE TABLE another_program(x)")
        assert missing_columns(db) == {
            ("alias", "name"), ("alias", "blob_id"), ("blob", "used"),
        }  # fmt: skip
