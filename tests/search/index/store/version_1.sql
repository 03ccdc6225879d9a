-- Version 1 of the database, as byok 0.1 made it. Never edit this file: databases of
-- this form are on users' disks, and every later version has to open them.
CREATE TABLE blob(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name BLOB NOT NULL UNIQUE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    state INTEGER NOT NULL,
    reason TEXT,
    spans BLOB NOT NULL DEFAULT x'',
    used INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX blob_unfinished ON blob(state) WHERE state <> 1;
CREATE TABLE content(
    blob_id INTEGER PRIMARY KEY REFERENCES blob(id) ON DELETE CASCADE,
    packed BLOB NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE INDEX content_size ON content(blob_id, bytes);
CREATE TABLE alias(
    name BLOB PRIMARY KEY,
    blob_id INTEGER NOT NULL REFERENCES blob(id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX alias_blob ON alias(blob_id);
CREATE TABLE checkpoint(
    id TEXT PRIMARY KEY,
    members BLOB NOT NULL,
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE workspace(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL UNIQUE,
    kept INTEGER NOT NULL DEFAULT 0,
    used INTEGER NOT NULL DEFAULT 0,
    head TEXT NOT NULL DEFAULT '',
    history BLOB
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
CREATE TABLE killer(
    name BLOB PRIMARY KEY
) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
PRAGMA user_version = 1;
