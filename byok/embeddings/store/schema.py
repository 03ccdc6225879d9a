"""The tables of the vector store.

A vector belongs to a key, a key to any number of chunks. So what is missing is a
difference of sets: keys of listed chunks without a vector in a space. Nothing else
says how far filling has come, and nothing can disagree with it after a crash.
"""

from byok.storage.kind import DatabaseKind, Policy

# The place of a vector is its row in the file that is scanned (`rows_file.py`). Id and
# place are one number, so that a block of rows is a range of ids.
PLACE_BITS = 32

FILLING, READY, LEFT = 0, 1, 2
"""States of a space; a space that is LEFT is removed step by step."""

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE space(
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice: files are named by it
    model TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    recipe TEXT NOT NULL,
    document_prefix TEXT NOT NULL,
    query_prefix TEXT NOT NULL,
    probe BLOB NOT NULL,                   -- vector of the probe text, float32
    state INTEGER NOT NULL,
    turn INTEGER NOT NULL DEFAULT 0,       -- of the last batch
    checked INTEGER NOT NULL DEFAULT 0     -- the turn before the last good probe
);
CREATE TABLE key(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name BLOB NOT NULL UNIQUE,             -- sha256(recipe || text)
    unused INTEGER                         -- day since when no chunk has it
);
CREATE INDEX key_unused ON key(unused) WHERE unused IS NOT NULL;
CREATE TABLE listing(                      -- blobs that were looked at
    recipe TEXT NOT NULL,
    blob_id INTEGER NOT NULL,
    name BLOB NOT NULL,                    -- of the blob: ids of another data.db differ
    index_version INTEGER NOT NULL,        -- of its spans
    expected INTEGER NOT NULL,             -- chunks by its spans, 0 if it has no code
    chunks INTEGER,                        -- rows of `chunk`; NULL: not known yet
    PRIMARY KEY(recipe, blob_id)
) WITHOUT ROWID;
CREATE INDEX listing_waiting ON listing(recipe) WHERE chunks IS NULL;
CREATE TABLE chunk(
    recipe TEXT NOT NULL,
    blob_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,              -- which of the blob's spans
    key_id INTEGER NOT NULL,
    PRIMARY KEY(recipe, blob_id, ordinal)
) WITHOUT ROWID;
CREATE INDEX chunk_key ON chunk(key_id);
CREATE TABLE vector(
    id INTEGER PRIMARY KEY,                -- space_id << 32 | place
    space_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    turn INTEGER NOT NULL,                 -- the batch: 1, 2, ...
    scale REAL NOT NULL,                   -- times the numbers: a vector of length 1
    crc INTEGER NOT NULL,                  -- of scale and numbers
    numbers BLOB NOT NULL                  -- int8
);
CREATE UNIQUE INDEX vector_key ON vector(space_id, key_id);
CREATE TABLE refused(                      -- texts that the model does not take
    space_id INTEGER NOT NULL,
    key_id INTEGER NOT NULL,
    day INTEGER NOT NULL,
    PRIMARY KEY(space_id, key_id)
) WITHOUT ROWID;
CREATE TABLE block(                        -- checksums of whole blocks of rows files
    space_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY(space_id, number)
) WITHOUT ROWID
"""


VECTORS = DatabaseKind(
    _TABLES,
    version=1,
    policy=Policy.CACHE,
    pragmas=("synchronous = FULL", "cache_size = -8000"),
    application=0x62796F76,
    notes_end=True,
    shrinks=True,
)


def first_id(space_id: int) -> int:
    """Return the least id of a vector of a space; the next space's ends the range."""
    return space_id << PLACE_BITS
