"""The tables of the newest version of the database, upgrade steps, binary columns.

The lexical index has a version of its own (`batches.INDEX_VERSION`) and needs no steps:
each blob has the version that indexed it, and blobs of older ones are indexed again.
"""

import zlib
from array import array
from collections.abc import Iterable
from itertools import accumulate, pairwise

import orjson

from byok.search.index.types import Commit, CommitHistory, Span
from byok.storage.kind import DatabaseKind, Policy, sql_step

# States of a blob. The order of commits is: rows with TO_INDEX, then the lexical index,
# then INDEXED; TO_REMOVE, then the lexical index, then the rows are deleted. So after a
# crash the rows tell which work may be half done. A NAMED row has only a name.
TO_INDEX, INDEXED, TO_REMOVE, NAMED = 0, 1, 2, 3
_U32, _I64 = "I", "q"  # type codes of `array`
SPAN_BYTES = 12  # of a span that `pack_spans` writes

_TABLES = """
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

INDEX = DatabaseKind(
    _TABLES,
    version=2,
    policy=Policy.DATA,
    pragmas=("synchronous = FULL", "foreign_keys = ON", "cache_size = -8000"),
    steps=(
        sql_step(
            2,
            "ALTER TABLE killer RENAME TO parser_crasher",
            "ALTER TABLE blob ADD COLUMN index_version INTEGER NOT NULL DEFAULT 0",
            "UPDATE blob SET index_version = coalesce("
            "(SELECT value FROM meta WHERE key = 'index_version'), 0)",
        ),
    ),
    tracks_clean_close=True,
)


def pack_spans(spans: Iterable[Span]) -> bytes:
    """Pack spans as three unsigned 32-bit numbers each."""
    return array(_U32, (number for span in spans for number in span)).tobytes()


def unpack_spans(packed: bytes) -> list[Span]:
    """Unpack spans."""
    numbers = array(_U32, packed)
    return [Span(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def pack_ids(ids: Iterable[int]) -> bytes:
    """Pack a set of ids: the differences of the sorted ids, deflated."""
    ordered = sorted(set(ids))
    gaps = array(_I64, (b - a for a, b in pairwise([0, *ordered])))
    return zlib.compress(gaps.tobytes(), 1)


def unpack_ids(packed: bytes) -> list[int]:
    """Unpack ids, in ascending order."""
    return list(accumulate(array(_I64, zlib.decompress(packed))))


def pack_history(history: CommitHistory) -> bytes:
    """Pack the commits of a workspace."""
    rows = [history.head, [list(commit) for commit in history.commits]]
    return zlib.compress(orjson.dumps(rows), 1)


def unpack_history(packed: bytes) -> CommitHistory:
    """Unpack the commits of a workspace."""
    head, rows = orjson.loads(zlib.decompress(packed))
    return CommitHistory(
        head, tuple(Commit(h, t, m, tuple(f), n) for h, t, m, f, n in rows)
    )
