"""An open space: its rows file, kept in step with the database, and its matrix."""

import logging
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from byok.search.vectors.numeric import Quantised, checksum, np
from byok.search.vectors.store.database import PLACE_BITS, Space, first_id
from byok.search.vectors.store.matrix import BLOCK, Columns, Matrix, RowsFile, is_own
from byok.search.vectors.types import Key
from byok.storage.database import select_in, transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byok.search.vectors.types import Vectors


_log = logging.getLogger(__name__)
_FETCH_ROWS = 4096
_SPARE_PLACES = 2**20  # that removed vectors may have left unused
_CHUNKS = (
    "SELECT c.blob_id, c.ordinal, v.id FROM chunk c "
    "JOIN vector v INDEXED BY vector_key ON v.space_id = ? AND v.key_id = c.key_id "
    "WHERE c.recipe = ?"
)
_PLACE_MASK = (1 << PLACE_BITS) - 1


class StoredVectors(NamedTuple):
    """Stored vectors: ascending places, and a key and a row for each."""

    places: Sequence[int]
    key_ids: Sequence[int]
    rows: Quantised


class OpenSpace:
    """The searchable vectors of a space; for one thread at a time.

    Only `matrix` may be used by other threads.
    """

    def __init__(self, db: sqlite3.Connection, folder: Path, space: Space) -> None:
        """Open the rows file, and rewrite blocks that differ from the database.

        Blocks: reads the whole file once to compare checksums.

        Raises:
            sqlite3.Error, OSError: the file cannot be read or written.
            ConfigError: the path is a link, or no plain file.
        """
        self.space = space
        self.matrix = Matrix()
        self._db = db
        self._dimensions = space.name.dimensions
        self._file = RowsFile(path_of(folder, space.id), space.id, self._dimensions)
        self._checksums: dict[int, int] = {}  # checksums still to be stored
        try:
            self._compare()
            self.load()
        except BaseException:
            self._file.close()
            raise

    @property
    def is_short(self) -> bool:
        """Whether somebody truncated the rows file, so that it must be opened anew."""
        return self._file.is_short

    def close(self) -> None:
        """Close the file; running searches can still finish."""
        self.matrix = Matrix()
        self._file.close()

    def load(self) -> None:
        """Read again which chunks have a vector."""
        used = self._used_places()
        self._end = int(used[-1]) + 1 if len(used) else 0
        free = np.setdiff1d(np.arange(self._end), used, assume_unique=True)
        self._free: list[int] = free[::-1].tolist()
        rows = self._db.execute(_CHUNKS, (self.space.id, self.space.name.recipe))
        parts = [_from_rows([])]
        while some := rows.fetchmany(_FETCH_ROWS):
            parts.append(_from_rows(some))
        columns = Columns(*map(np.concatenate, zip(*parts, strict=True)))
        self.matrix.load(columns, self._file.blocks)

    def store(self, key_ids: Sequence[int], rows: Quantised) -> StoredVectors:
        """Store vectors of keys in the database, inside a transaction.

        After the transaction, `publish` the result.
        """
        reused = self._free[max(0, len(self._free) - len(key_ids)) :]
        new = range(self._end, self._end + len(key_ids) - len(reused))
        stored = StoredVectors(sorted([*reused, *new]), key_ids, rows)
        self._store_checksums()
        insert_vectors(self._db, self.space.id, stored)
        return stored

    def publish(self, stored: StoredVectors) -> None:
        """Copy stored vectors to the file, and add their chunks to the matrix."""
        places = stored.places
        new = sum(place >= self._end for place in places)
        del self._free[len(self._free) - (len(places) - new) :]
        self._end += new
        self._file.reserve(self._end)
        rows = stored.rows
        self._file.write(np.array(places, np.int64), rows.numbers, rows.scales)
        for number in {place // BLOCK for place in places}:
            self._checksums.pop(number, None)
            if (number + 1) * BLOCK <= self._end:
                self._checksums[number] = self._file.crc_of(number)
        added = self._columns_of("key_id", stored.key_ids)
        self.matrix.add(added, self._file.blocks)

    def publish_blobs(self, blob_ids: Iterable[int]) -> None:
        """Add the chunks of newly listed blobs that already have vectors."""
        added = self._columns_of("blob_id", blob_ids)
        if len(added.blob):
            self.matrix.add(added, self._file.blocks)

    def forget(self, blob_ids: Collection[int]) -> None:
        """Hide the chunks of these blobs."""
        self.matrix.forget(blob_ids)
        if self.matrix.gone > max(BLOCK, self.matrix.chunks):
            self.load()

    def _store_checksums(self) -> None:
        rows = [(self.space.id, *pair) for pair in self._checksums.items()]
        self._db.executemany("INSERT OR REPLACE INTO block VALUES(?, ?, ?)", rows)
        self._checksums.clear()

    def _compare(self) -> None:
        """Rewrite blocks whose checksum is wrong or missing."""
        used = self._used_places()
        count = -(-(int(used[-1]) + 1) // BLOCK) if len(used) else 0
        stored = dict(
            self._db.execute(
                "SELECT number, crc FROM block WHERE space_id = ?", (self.space.id,)
            )
        )
        self._file.reserve(count * BLOCK)
        wrong = [n for n in range(count) if stored.get(n) != self._file.crc_of(n)]
        with transaction(self._db):
            for number in wrong:
                self._rewrite(number)
            self._store_checksums()
        if len(wrong) > 1:
            _log.info("%d of %d blocks of vectors were copied again", len(wrong), count)

    def _rewrite(self, number: int) -> None:
        """Copy a block from the database; places without a vector are zeros.

        Vectors with a wrong checksum are deleted, so that they are made again.
        """
        start = first_id(self.space.id) + number * BLOCK
        numbers = np.zeros((BLOCK, self._dimensions), np.int8)
        scales = np.zeros(BLOCK, np.float32)
        damaged = []
        for row_id, scale, crc, packed in self._db.execute(
            "SELECT id, scale, crc, numbers FROM vector WHERE id >= ? AND id < ?",
            (start, start + BLOCK),
        ):
            if not _is_whole(scale, crc, packed, self._dimensions):
                damaged.append((row_id,))
                continue
            numbers[row_id - start] = np.frombuffer(packed, np.int8)
            scales[row_id - start] = scale
        if damaged:
            self._db.executemany("DELETE FROM vector WHERE id = ?", damaged)
            _log.warning("%d damaged vectors are made again", len(damaged))
        places = np.arange(number * BLOCK, (number + 1) * BLOCK)
        self._file.write(places, numbers, scales)
        self._checksums[number] = self._file.crc_of(number)

    def _used_places(self) -> "NDArray[np.int64]":
        """Return the places that have a vector, ascending.

        Raises:
            ValueError: one is so far from the others that it must be damaged. File and
                arrays are as long as the last place, so they would fill the memory.
        """
        ids = self._db.execute(
            "SELECT id FROM vector INDEXED BY vector_key WHERE space_id = ?",
            (self.space.id,),
        )
        parts = [np.empty(0, np.int64)]
        while rows := ids.fetchmany(_FETCH_ROWS):
            parts.append(np.array(rows, np.int64)[:, 0] & _PLACE_MASK)
        places: NDArray[np.int64] = np.sort(np.concatenate(parts))
        if len(places) and places[-1] > _SPARE_PLACES + 4 * len(places):
            raise ValueError(f"a vector is at the place {places[-1]}")
        return places

    def _columns_of(self, column: str, ids: Iterable[int]) -> Columns:
        """Return the chunks with a vector that have one of these ids in a column."""
        sql = f"{_CHUNKS} AND c.{column} IN (?)"
        values = (self.space.id, self.space.name.recipe)
        return _from_rows(list(select_in(self._db, sql, ids, values)))


def remove_files(folder: Path, space_ids: Iterable[int]) -> None:
    """Remove the rows files of all other spaces; files of other programs stay."""
    names = {path_of(folder, space_id) for space_id in space_ids}
    for path in folder.glob("space-*.rows"):
        if path not in names and is_own(path):
            with suppress(OSError):  # Windows, while a search has it open
                path.unlink()


def path_of(folder: Path, space_id: int) -> Path:
    """Return the rows file of a space."""
    return folder / f"space-{space_id}.rows"


def ids_of_keys(db: sqlite3.Connection, keys: Iterable[Key]) -> dict[Key, int]:
    """Return the ids of the keys that have one."""
    return dict(select_in(db, "SELECT name, id FROM key WHERE name IN (?)", keys))


def insert_vectors(
    db: sqlite3.Connection, space_id: int, stored: StoredVectors
) -> None:
    """Store vectors as one batch, inside a transaction."""
    (turn,) = db.execute(
        "UPDATE space SET turn = turn + 1 WHERE id = ? RETURNING turn", (space_id,)
    ).fetchone()
    places, key_ids, rows = stored
    start = first_id(space_id)
    values = [
        (start + place, space_id, key_id, turn, scale, checksum(packed, scale), packed)
        for place, key_id, scale, numbers in zip(
            places, key_ids, rows.scales.tolist(), rows.numbers, strict=True
        )
        for packed in [numbers.tobytes()]
    ]
    db.executemany("INSERT INTO vector VALUES(?, ?, ?, ?, ?, ?, ?)", values)
    changed = sorted({place // BLOCK for place in places})
    blocks = [(space_id, number) for number in changed]
    db.executemany("DELETE FROM block WHERE space_id = ? AND number = ?", blocks)


def vectors_of(
    db: sqlite3.Connection, space: Space, keys: Iterable[Key]
) -> dict[Key, "Vectors"]:
    """Return the undamaged vectors of some keys, each of shape (dimensions,)."""
    sql = (
        "SELECT k.name, v.scale, v.crc, v.numbers FROM key k "
        "JOIN vector v ON v.space_id = ? AND v.key_id = k.id WHERE k.name IN (?)"
    )
    return {
        key: np.multiply(np.frombuffer(packed, np.int8), scale, dtype=np.float32)
        for key, scale, crc, packed in select_in(db, sql, keys, (space.id,))
        if _is_whole(scale, crc, packed, space.name.dimensions)
    }


def _is_whole(scale: Any, crc: Any, packed: Any, dimensions: int) -> bool:
    return (
        isinstance(packed, bytes)
        and len(packed) == dimensions
        and isinstance(scale, float)
        and checksum(packed, scale) == crc
    )


def _from_rows(rows: Sequence[Sequence[int]]) -> Columns:
    table = np.array(rows, np.int64).reshape(len(rows), 3)
    places = (table[:, 2] & _PLACE_MASK).astype(np.int32)
    return Columns(table[:, 0].copy(), table[:, 1].astype(np.int32), places)
