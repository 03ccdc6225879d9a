"""Vectors as rows of the database: numbers, scale and checksum by key."""

import logging
import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from byok.search.vectors.numeric import np
from byok.search.vectors.store.matrix import Columns
from byok.search.vectors.store.quantise import Quantised, checksum
from byok.search.vectors.store.rows_file import BLOCK
from byok.search.vectors.store.spaces import PLACE_BITS, first_id
from byok.search.vectors.types import Key
from byok.storage.database import select_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byok.search.vectors.types import Vectors

_log = logging.getLogger(__name__)
_AT_ONCE = 4096
_SPARE_PLACES = 2**20  # of vectors that were removed
_CHUNKS = (
    "SELECT c.blob_id, c.ordinal, v.id FROM chunk c "
    "JOIN vector v INDEXED BY vector_key ON v.space_id = ? AND v.key_id = c.key_id "
    "WHERE c.recipe = ?"
)
_PLACE = (1 << PLACE_BITS) - 1


def places_of(db: sqlite3.Connection, space_id: int) -> "NDArray[np.int64]":
    """Return the places of a space that have a vector, ascending.

    Raises:
        ValueError: one is so far from the others that a bit of it was flipped. Files
            and arrays have room for all places, so they would fill the memory.
    """
    ids = db.execute(
        "SELECT id FROM vector INDEXED BY vector_key WHERE space_id = ?", (space_id,)
    )
    parts = [np.empty(0, np.int64)]
    while some := ids.fetchmany(_AT_ONCE):
        parts.append(np.array(some, np.int64)[:, 0] & _PLACE)
    found: NDArray[np.int64] = np.sort(np.concatenate(parts))
    if len(found) and found[-1] > _SPARE_PLACES + 4 * len(found):
        raise ValueError(f"a vector is at the place {found[-1]}")
    return found


def columns_of(db: sqlite3.Connection, space_id: int, recipe: str) -> Columns:
    """Return all chunks of a recipe that have a vector in a space."""
    rows = db.execute(_CHUNKS, (space_id, recipe))
    parts = [_from_rows([])]
    while some := rows.fetchmany(_AT_ONCE):
        parts.append(_from_rows(some))
    return Columns(
        np.concatenate([part.blob for part in parts]),
        np.concatenate([part.ordinal for part in parts]),
        np.concatenate([part.place for part in parts]),
    )


def columns_of_keys(
    db: sqlite3.Connection, space_id: int, recipe: str, key_ids: Iterable[int]
) -> Columns:
    """Return the chunks that have these keys, of those with a vector."""
    sql = f"{_CHUNKS} AND c.key_id IN (?)"
    return _from_rows(list(select_in(db, sql, key_ids, (space_id, recipe))))


def columns_of_blobs(
    db: sqlite3.Connection, space_id: int, recipe: str, blob_ids: Iterable[int]
) -> Columns:
    """Return the chunks of these blobs that have a vector."""
    sql = f"{_CHUNKS} AND c.blob_id IN (?)"
    return _from_rows(list(select_in(db, sql, blob_ids, (space_id, recipe))))


def ids_of_keys(db: sqlite3.Connection, keys: Iterable[Key]) -> dict[Key, int]:
    """Return the ids of those keys that have one."""
    return dict(select_in(db, "SELECT name, id FROM key WHERE name IN (?)", keys))


def insert(
    db: sqlite3.Connection,
    space_id: int,
    places: Sequence[int],
    key_ids: Sequence[int],
    rows: Quantised,
) -> None:
    """Store vectors as one batch, inside a transaction."""
    (turn,) = db.execute(
        "UPDATE space SET turn = turn + 1 WHERE id = ? RETURNING turn", (space_id,)
    ).fetchone()
    start = first_id(space_id)
    values = [
        (start + place, space_id, key_id, turn, scale, checksum(packed, scale), packed)
        for place, key_id, scale, numbers in zip(
            places, key_ids, rows.scales.tolist(), rows.numbers, strict=True
        )
        for packed in [numbers.tobytes()]
    ]
    db.executemany("INSERT INTO vector VALUES(?, ?, ?, ?, ?, ?, ?)", values)
    touched = sorted({place // BLOCK for place in places})
    forget_checksums(db, space_id, touched)


def vectors_of(
    db: sqlite3.Connection, space_id: int, dimensions: int, keys: Iterable[Key]
) -> dict[Key, "Vectors"]:
    """Return the vectors of those keys that have a whole one, each (dimensions,)."""
    sql = (
        "SELECT k.name, v.scale, v.crc, v.numbers FROM key k "
        "JOIN vector v ON v.space_id = ? AND v.key_id = k.id WHERE k.name IN (?)"
    )
    return {
        key: np.multiply(np.frombuffer(packed, np.int8), scale, dtype=np.float32)
        for key, scale, crc, packed in select_in(db, sql, keys, (space_id,))
        if _is_whole(scale, crc, packed, dimensions)
    }


def forget_checksums(
    db: sqlite3.Connection, space_id: int, numbers: Iterable[int]
) -> None:
    """Have blocks of the rows file written again at the next start."""
    rows = [(space_id, number) for number in numbers]
    db.executemany("DELETE FROM block WHERE space_id = ? AND number = ?", rows)


def read_block(
    db: sqlite3.Connection, space_id: int, number: int, dimensions: int
) -> tuple["NDArray[np.int8]", "NDArray[np.float32]"]:
    """Return numbers and scales of a block; places without a vector have zeros.

    Rows with a wrong checksum are deleted, so that they are made again.
    """
    start = first_id(space_id) + number * BLOCK
    numbers = np.zeros((BLOCK, dimensions), np.int8)
    scales = np.zeros(BLOCK, np.float32)
    damaged = []
    for row_id, scale, crc, packed in db.execute(
        "SELECT id, scale, crc, numbers FROM vector WHERE id >= ? AND id < ?",
        (start, start + BLOCK),
    ):
        if not _is_whole(scale, crc, packed, dimensions):
            damaged.append((row_id,))
            continue
        numbers[row_id - start] = np.frombuffer(packed, np.int8)
        scales[row_id - start] = scale
    if damaged:
        db.executemany("DELETE FROM vector WHERE id = ?", damaged)
        _log.warning("%d damaged vectors are made again", len(damaged))
    return numbers, scales


def _is_whole(scale: Any, crc: Any, packed: Any, dimensions: int) -> bool:
    return (
        isinstance(packed, bytes)
        and len(packed) == dimensions
        and isinstance(scale, float)
        and checksum(packed, scale) == crc
    )


def _from_rows(rows: Sequence[Sequence[int]]) -> Columns:
    table = np.array(rows, np.int64).reshape(len(rows), 3)
    places = (table[:, 2] & _PLACE).astype(np.int32)
    return Columns(table[:, 0].copy(), table[:, 1].astype(np.int32), places)
