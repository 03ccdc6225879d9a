"""The database of vectors: used by one thread at a time, with byok's own errors.

Unlike the database of the index it has only data that can be made again, so damage is
no reason to stop. Files that may belong to somebody else are left unchanged: a link, a
database of another program, one of a later version.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from byok.core.errors import ConfigError, DiskFull, IndexFailed, NotReady
from byok.search.vectors.numeric import cosine, np
from byok.search.vectors.types import SpaceName
from byok.storage.damage import (
    DATABASE_ENDINGS,
    is_damage,
    is_full,
    is_other,
    is_plain,
    remove_set_aside,
)
from byok.storage.database import ForeignDatabase, open_or_begin_anew
from byok.storage.kind import DatabaseKind, Policy

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

_log = logging.getLogger(__name__)


# The place of a vector is its row in the file that is scanned (`RowsFile`). The id of
# the space and the place are the id of a vector, so a block of rows is a range of ids.
PLACE_BITS = 32
# The states of a space; one that is LEFT is removed in small steps.
FILLING, READY, LEFT = 0, 1, 2
# The cosine of two vectors of the probe text from which a model counts as the same.
SAME_COSINE = 0.999
_SPACE_COLUMNS = (
    "id, model, dimensions, recipe, document_prefix, query_prefix, probe, state"
)

# A vector belongs to a key, a key to any number of chunks. So the missing vectors are a
# difference of sets: keys of listed chunks without a vector in a space. No other row
# tells the progress of filling, so none can disagree after a crash.
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
    tracks_clean_close=True,
    shrinks=True,
)


def first_id(space_id: int) -> int:
    """Return the first vector id of a space; that of the next space ends its range."""
    return space_id << PLACE_BITS


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors that may be compared: those of one model with one name and recipe.

    `probe` is the vector of the probe text, as a row. A space `is_ready` once it has
    had 95 % of all vectors.
    """

    id: int
    name: SpaceName
    probe: "Vectors" = field(compare=False)
    is_ready: bool

    def answers(self, other: "Space") -> bool:
        """Tell whether vectors of another space's questions can be compared with these.

        The recipe and the prefix of texts may differ: the old vectors are still useful
        until the new space is filled. Another prefix also changes the vector of the
        probe; with the same prefix, the model must give the same vector.
        """
        name, other_name = self.name, other.name
        if (name.model, name.dimensions, name.query_prefix) != (
            *(other_name.model, other_name.dimensions, other_name.query_prefix),
        ):
            return False
        if name.document_prefix != other_name.document_prefix:
            return True
        return cosine(self.probe, other.probe) >= SAME_COSINE


def all_spaces(db: sqlite3.Connection) -> list[Space]:
    """Return the spaces, the newest first."""
    rows = db.execute(
        f"SELECT {_SPACE_COLUMNS} FROM space WHERE state <> ? ORDER BY id DESC",  # noqa: S608
        (LEFT,),
    )
    return [
        Space(
            row[0],
            SpaceName(*row[1:6]),
            np.frombuffer(row[6], dtype=np.float32).reshape(1, -1),
            row[7] == READY,
        )
        for row in rows
    ]


def make_space(db: sqlite3.Connection, name: SpaceName, probe: "Vectors") -> Space:
    """Create a space, inside a transaction."""
    row = np.asarray(probe, dtype=np.float32).reshape(1, -1)
    cursor = db.execute(
        "INSERT INTO space(model, dimensions, recipe, document_prefix, query_prefix, "
        "probe, state) VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            *(name.model, name.dimensions, name.recipe),
            *(name.document_prefix, name.query_prefix, row.tobytes(), FILLING),
        ),
    )
    return Space(int(cursor.lastrowid or 0), name, row, is_ready=False)


def schedule_removal(db: sqlite3.Connection, spaces: Iterable[Space]) -> None:
    """Mark spaces for removal, inside a transaction; `tidy` deletes their rows."""
    rows = [(LEFT, space.id) for space in spaces]
    db.executemany("UPDATE space SET state = ? WHERE id = ?", rows)


class VectorDatabase:
    """The database of vectors, for one thread at a time."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or create the database, and attach the `index` for reading, as `data`.

        Blocks, after a crash for about a second per gigabyte. `on_damage` is called, by
        any thread, when the database turns out to be damaged; opening it again sets it
        aside.

        Raises:
            CannotStart: `newer_data`, a later version wrote it; it stays unchanged.
            ConfigError: it is a link, or of another program; it stays unchanged.
            DiskFull, IndexFailed: it cannot be written.
        """
        self._path = path
        self._lock = threading.RLock()
        self._is_damaged = False
        self._on_damage = on_damage
        for end in (*DATABASE_ENDINGS, ".new"):
            check_plain(path.with_name(path.name + end))
        with translate_errors(path):
            self._database = open_or_begin_anew(path, VECTORS)
            try:
                uri = f"{index.absolute().as_uri()}?mode=ro"
                self._database.connection.execute("ATTACH ? AS data", (uri,))
            except BaseException:
                self._database.close(clean=False)
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lock and yield the connection; reentrant.

        Raises:
            DiskFull, NotReady, IndexFailed: the database cannot be used.
        """
        with self._lock, translate_errors(self._path):
            try:
                yield self._database.connection
            except sqlite3.DatabaseError as error:
                if is_damage(error) and not self._is_damaged:
                    self._is_damaged = True
                    self._on_damage()
                raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one durable transaction; raises as `reading` does."""
        with self.reading(), self._database.writing() as db:
            yield db

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` records that the next start need not check for damage."""
        with self._lock:
            self._database.close(clean=clean and not self._is_damaged)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate errors of SQLite and of files to byok's."""
    try:
        yield
    except ForeignDatabase as error:
        raise ConfigError(
            f"{path} is a database of another program; byok has left it as it is.",
            hint="Move it away.",
            status=422,
        ) from error
    except (sqlite3.DatabaseError, OSError) as error:
        if is_full(path, error):
            raise DiskFull(
                "The disk is full; vectors cannot be stored.",
                hint="Free some disk space.",
            ) from error
        if is_damage(error):
            raise IndexFailed(
                f"{path.name} is damaged: {error}.",
                code="vectors_damaged",
                hint="Restart byok: it is set aside then, and vectors are made anew.",
            ) from error
        raise NotReady(f"{path.name} cannot be used: {error}.") from error
    except (TypeError, ValueError, OverflowError) as error:
        # Rows whose types or lengths are wrong, which no check of SQLite finds.
        _log.error("%s holds what byok never wrote", path.name, exc_info=error)
        raise IndexFailed(
            f"{path.name} is damaged.",
            code="vectors_damaged",
            hint="Stop byok and remove that file; vectors are made anew.",
        ) from error


def check_plain(path: Path) -> None:
    """Check that a path is a plain file, or free.

    Raises:
        ConfigError: it is a link or something else, and stays unchanged.
    """
    if is_other(path):
        raise ConfigError(
            f"{path} is no plain file; byok keeps vectors there and has left it as it "
            "is.",
            hint="Move it away.",
            status=422,
        )


def remove_set_aside_files(path: Path) -> None:
    """Remove damaged databases that were set aside, if they are plain files.

    Raises:
        NotReady: one cannot be removed.
    """
    with translate_errors(path):
        remove_set_aside(path, limit=VECTORS.policy.max_aside)
        for end in DATABASE_ENDINGS:  # those of byok 0.2
            former = path.with_name(f"{path.name}.corrupt{end}")
            if is_plain(former):
                former.unlink()
