"""The database of vectors: one thread at a time, errors as byok's own.

Unlike the index's database it holds nothing that cannot be made again, so damage is no
reason to stop. What may be somebody else's is left as it is: a link, a database of
another program, one of a later version.
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
from byok.storage.database import ForeignDatabase, open_or_begin_anew, today
from byok.storage.kind import DatabaseKind, Policy

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors


# The tables of the vector store.
#
# A vector belongs to a key, a key to any number of chunks. So what is missing is a
# difference of sets: keys of listed chunks without a vector in a space. Nothing else
# says how far filling has come, and nothing can disagree with it after a crash.


# The place of a vector is its row in the file that is scanned (`RowsFile`). Id and
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


# Spaces: what vectors of different models are kept apart by, as rows.


SAME = 0.999
"""The cosine of two vectors of the probe text from which a model counts as the same."""

_COLUMNS = "id, model, dimensions, recipe, document_prefix, query_prefix, probe, state"


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors that may be compared: those of one model under one name and recipe.

    `probe` is the vector of the probe text, a row. A space `is_ready` from when it has
    95 % of all vectors.
    """

    id: int
    name: SpaceName
    probe: "Vectors" = field(compare=False)
    is_ready: bool

    def answers(self, other: "Space") -> bool:
        """Tell whether questions made by another space's model can be compared too.

        The recipe and the prefix of texts may differ: a change of those is no reason
        to do without the old vectors meanwhile. A prefix also changes the probe's
        vector; without it the model must still give the same.
        """
        mine, its = self.name, other.name
        if (mine.model, mine.dimensions, mine.query_prefix) != (
            *(its.model, its.dimensions, its.query_prefix),
        ):
            return False
        if mine.document_prefix != its.document_prefix:
            return True
        return cosine(self.probe, other.probe) >= SAME


def all_spaces(db: sqlite3.Connection) -> list[Space]:
    """Return the spaces, the newest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM space WHERE state <> ? ORDER BY id DESC",  # noqa: S608
        (LEFT,),
    )
    return [
        Space(row[0], SpaceName(*row[1:6]), _vector(row[6]), row[7] == READY)
        for row in rows
    ]


def find_space(
    db: sqlite3.Connection, name: SpaceName, probe: "Vectors"
) -> Space | None:
    """Return the space of a model that still gives the same vector for the probe."""
    for space in all_spaces(db):
        if space.name == name and cosine(space.probe, probe) >= SAME:
            return space
    return None


def make_space(db: sqlite3.Connection, name: SpaceName, probe: "Vectors") -> Space:
    """Make a space, inside a transaction."""
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


def leave(db: sqlite3.Connection, spaces: Iterable[Space]) -> None:
    """Have spaces removed, inside a transaction; `tidy` does it step by step."""
    rows = [(LEFT, space.id) for space in spaces]
    db.executemany("UPDATE space SET state = ? WHERE id = ?", rows)


def note_good_probe(db: sqlite3.Connection, space: Space) -> None:
    """Take all vectors of a space as those of its model, inside a transaction."""
    db.execute("UPDATE space SET checked = turn WHERE id = ?", (space.id,))


def refuse(db: sqlite3.Connection, space: Space, key_ids: Iterable[int]) -> None:
    """Note that a model does not take these texts, inside a transaction."""
    rows = [(space.id, key_id, today()) for key_id in key_ids]
    db.executemany("INSERT OR REPLACE INTO refused VALUES(?, ?, ?)", rows)


def drop_unchecked(db: sqlite3.Connection, space: Space) -> int:
    """Delete the vectors made since the last good probe; return how many they were.

    Some of them may be of another model. Inside a transaction.
    """
    return db.execute(
        "DELETE FROM vector WHERE id >= ? AND id < ? "
        "AND turn > (SELECT checked FROM space WHERE id = ?)",
        (first_id(space.id), first_id(space.id + 1), space.id),
    ).rowcount


def _vector(packed: bytes) -> "Vectors":
    return np.frombuffer(packed, dtype=np.float32).reshape(1, -1)


_log = logging.getLogger(__name__)


class VectorDatabase:
    """Lends the database to one thread after another."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or make the database; `index` is that of the code index, as `data`.

        The second is attached for reading only. Blocks, after a crash for a second per
        gigabyte or so. `on_damage` is called, by any thread, when it turns out to be
        damaged. Opening it once more sets it aside.

        Raises:
            CannotStart: `newer_data`, a later version wrote it; it is left as it is.
            ConfigError: it is a link, or of another program; it is left as it is.
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
        """Lend the connection; a thread that has it may ask for it again.

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
        """Close; `clean` notes that nothing need be checked at the next start."""
        with self._lock:
            self._database.close(clean=clean and not self._is_damaged)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of files into byok's."""
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
    """Refuse a link or anything but a file; one that is missing is accepted.

    Raises:
        ConfigError: it is left as it is.
    """
    if is_other(path):
        raise ConfigError(
            f"{path} is no plain file; byok keeps vectors there and has left it as it "
            "is.",
            hint="Move it away.",
            status=422,
        )


def remove_aside(path: Path) -> None:
    """Remove damaged databases that were set aside; all but plain files are left.

    Raises:
        NotReady: one cannot be removed.
    """
    with translate_errors(path):
        remove_set_aside(path, most=VECTORS.policy.most_aside)
        for end in DATABASE_ENDINGS:  # what byok 0.2 set aside
            former = path.with_name(f"{path.name}.corrupt{end}")
            if is_plain(former):
                former.unlink()
