"""The tables of a new database, and the ids of vectors."""

import sqlite3
from contextlib import closing

from byok.embeddings.store.schema import APPLICATION, VERSION, create_tables, first_id


def test_a_new_database_says_whose_it_is() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        create_tables(db)
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_ids_of_vectors_of_two_spaces_do_not_meet() -> None:
    assert first_id(1) + 2**32 - 1 < first_id(2)
    assert first_id(2**30) < 2**63
