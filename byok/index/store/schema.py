"""The tables of the database, as the newest version has them."""

import sqlite3
from contextlib import closing

VERSION = 2
"""Kept in `PRAGMA user_version`; a higher one needs a row in `migrations.py`."""

SCHEMA = """
CREATE TABLE blob(
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: old documents keep it
    name BLOB NOT NULL UNIQUE,             -- sha256(path || content)
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,                           -- why there is nothing to search in it
    spans BLOB NOT NULL DEFAULT x'',       -- first line, last line, characters: 3 x u32
    used INTEGER NOT NULL DEFAULT 0,       -- day it was last asked for, since 1970
    index_version INTEGER NOT NULL DEFAULT 0  -- of what cut it and made its terms
);
CREATE INDEX blob_unfinished ON blob(state) WHERE state <> 1;
CREATE TABLE content(
    blob_id INTEGER PRIMARY KEY REFERENCES blob(id) ON DELETE CASCADE,
    packed BLOB NOT NULL,                  -- zlib
    bytes INTEGER NOT NULL                 -- of `packed`
);
CREATE INDEX content_size ON content(blob_id, bytes);  -- contents are far apart
CREATE TABLE alias(                        -- names that clients made in another way
    name BLOB PRIMARY KEY,
    blob_id INTEGER NOT NULL REFERENCES blob(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX alias_blob ON alias(blob_id);
CREATE TABLE checkpoint(
    id TEXT PRIMARY KEY,
    members BLOB NOT NULL,                 -- packed blob ids
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE workspace(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL UNIQUE,
    kept INTEGER NOT NULL DEFAULT 0,       -- by `byok index add`, else by the settings
    used INTEGER NOT NULL DEFAULT 0,       -- day it was last open
    head TEXT NOT NULL DEFAULT '',         -- commit that `history` was read at
    history BLOB                           -- packed commits
);
CREATE TABLE file(
    workspace_id INTEGER NOT NULL REFERENCES workspace(id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    blob_id INTEGER REFERENCES blob(id) ON DELETE SET NULL,
    reason TEXT,
    PRIMARY KEY(workspace_id, path)
) WITHOUT ROWID;
CREATE INDEX file_blob ON file(blob_id);
CREATE TABLE parser_crasher(               -- file versions that crashed the parser
    name BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID
"""


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of a new database, in one transaction."""
    db.executescript(f"BEGIN;{SCHEMA};PRAGMA user_version = {VERSION};COMMIT")


def missing_columns(db: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return what the newest schema has and a database has not: (table, column)."""
    with closing(sqlite3.connect(":memory:")) as new:
        create_tables(new)
        return _columns(new) - _columns(db)


def _columns(db: sqlite3.Connection) -> set[tuple[str, str]]:
    sql = "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
    return set(db.execute(f"{sql} WHERE t.type = 'table'"))
