"""Listings, rows of the blobs whose chunks need a vector, and of their chunks' keys.

A listing has the id and the name of its blob, and the version of the index that split
it. If data.db was replaced, the same id may mean another file; then the listing differs
from the row of the blob, and is deleted before any question is answered.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from byok.search.index.contents import Entry
from byok.search.index.store.schema import INDEXED, SPAN_BYTES, TO_INDEX
from byok.search.vectors.store.database import Space
from byok.search.vectors.types import Key
from byok.storage.database import select_in

_MAX_PREFERRED = 500


class FillProgress(NamedTuple):
    """The progress of a space, in chunks of the index.

    `chunks` need a vector (an estimate while blobs are not read yet), `embedded` have
    one, `refused` are not accepted by the model.
    """

    chunks: int
    embedded: int
    refused: int

    @property
    def share(self) -> float:
        """The completed share, with refused chunks; 1 if no chunk needs a vector."""
        done = self.embedded + self.refused
        return min(1.0, done / self.chunks) if self.chunks else 1.0


class ListedKey(NamedTuple):
    """A key, its number (pages are in this order), and the workspaces with its text."""

    number: int
    key: Key
    workspaces: tuple[int, ...] = ()


def delete_stale(db: sqlite3.Connection) -> set[int]:
    """Delete the listings of blobs that are gone or changed; return their ids.

    Inside a transaction.
    """
    gone = db.execute(
        "DELETE FROM listing WHERE NOT EXISTS(SELECT 1 FROM data.blob b "
        "WHERE b.id = listing.blob_id AND b.name = listing.name "
        "AND b.index_version = listing.index_version AND b.state IN (?, ?)) "
        "RETURNING recipe, blob_id",
        (TO_INDEX, INDEXED),
    ).fetchall()
    db.executemany("DELETE FROM chunk WHERE recipe = ? AND blob_id = ?", gone)
    return {blob_id for _, blob_id in gone}


def list_new(
    db: sqlite3.Connection, recipe: str, is_embedded: Callable[[str], bool]
) -> int:
    """Add listings for new blobs, inside a transaction.

    Return how many of them have chunks that need vectors.
    """
    blobs = db.execute(
        "SELECT b.id, b.name, b.index_version, b.path, length(b.spans) / ? "
        "FROM data.blob b WHERE b.state = ? AND b.reason IS NULL "
        "AND length(b.spans) > 0 AND NOT EXISTS(SELECT 1 FROM listing l "
        "WHERE l.recipe = ? AND l.blob_id = b.id)",
        (SPAN_BYTES, INDEXED, recipe),
    ).fetchall()
    rows = [
        (recipe, *names, count if embedded else 0, None if embedded else 0)
        for *names, path, count in blobs
        for embedded in [is_embedded(path)]
    ]
    db.executemany("INSERT INTO listing VALUES(?, ?, ?, ?, ?, ?)", rows)
    return sum(row[-1] is None for row in rows)


def index_version(db: sqlite3.Connection) -> int:
    """Return a number that changes when another connection changed the index."""
    return int(db.execute("PRAGMA data.data_version").fetchone()[0])


def delete_empty(db: sqlite3.Connection) -> None:
    """Delete the listings of blobs without chunks, so that these are checked again.

    The rules or files may have changed.
    """
    db.execute("DELETE FROM listing WHERE chunks = 0")


def find_unlisted(
    db: sqlite3.Connection, recipe: str, preferred: Collection[int], limit: int
) -> list[Entry]:
    """Return blobs whose keys are unknown: preferred ones, then the newest files."""
    waiting = "SELECT blob_id FROM listing WHERE recipe = ? AND chunks IS NULL"
    return _find_blobs(db, waiting, (recipe,), preferred, limit)


def find_incomplete(
    db: sqlite3.Connection, space: Space, preferred: Collection[int], limit: int
) -> list[Entry]:
    """Return blobs that have a key without a vector, ordered as `find_unlisted` does.

    Compares all chunks: a third of a second for 300,000.
    """
    missing = (
        "SELECT DISTINCT c.blob_id FROM chunk c WHERE c.recipe = ? "
        "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
        "AND v.key_id = c.key_id) AND NOT EXISTS(SELECT 1 FROM refused r "
        "WHERE r.space_id = ? AND r.key_id = c.key_id)"
    )
    values = (space.name.recipe, space.id, space.id)
    return _find_blobs(db, missing, values, preferred, limit)


def _find_blobs(
    db: sqlite3.Connection,
    blobs: str,
    values: Sequence[object],
    preferred: Collection[int],
    limit: int,
) -> list[Entry]:
    first_ids = list(preferred)[:_MAX_PREFERRED]
    first = f"b.id IN ({','.join(map(str, map(int, first_ids)))})"
    rows = db.execute(
        f"SELECT b.id, b.path, b.spans FROM data.blob b WHERE b.id IN ({blobs}) "  # noqa: S608
        f"AND b.state = ? ORDER BY {first} DESC, coalesce((SELECT max(f.mtime_ns) "
        "FROM data.file f WHERE f.blob_id = b.id), 0) DESC, b.id DESC LIMIT ?",
        (*values, INDEXED, limit),
    )
    entries = [Entry(*row) for row in rows]
    ranks = {blob_id: rank for rank, blob_id in enumerate(first_ids)}
    entries.sort(key=lambda blob: ranks.get(blob.blob_id, len(ranks)))
    return entries


def list_chunks(
    db: sqlite3.Connection, recipe: str, blobs: Mapping[int, Sequence[tuple[int, Key]]]
) -> list[int]:
    """Store the keys of blobs' chunks by their ordinals, inside a transaction.

    Return the blobs whose keys are new or changed: another version of byok may mask
    other parts of a text. A listed blob that comes without keys cannot be read now, and
    stays unchanged.
    """
    known = keys_of(db, recipe, blobs)
    changed = [
        blob_id
        for blob_id, keys in blobs.items()
        if known.get(blob_id) != [*keys] and (keys or blob_id not in known)
    ]
    ids = [(recipe, blob_id) for blob_id in changed]
    db.executemany("DELETE FROM chunk WHERE recipe = ? AND blob_id = ?", ids)
    rows = [(blob_id, *row) for blob_id in changed for row in blobs[blob_id]]
    db.executemany("INSERT OR IGNORE INTO key(name) VALUES(?)", [r[2:] for r in rows])
    db.executemany(
        "INSERT INTO chunk SELECT ?, ?, ?, id FROM key WHERE name = ?",
        [(recipe, *row) for row in rows],
    )
    db.executemany(
        "UPDATE listing SET chunks = ? WHERE recipe = ? AND blob_id = ?",
        [(len(blobs[blob_id]), recipe, blob_id) for blob_id in changed],
    )
    return changed


def keys_of(
    db: sqlite3.Connection, recipe: str, blob_ids: Iterable[int]
) -> dict[int, list[tuple[int, Key]]]:
    """Return the ordinals and keys of listed blobs, sorted by ordinal."""
    keys: dict[int, list[tuple[int, Key]]] = {}
    sql = (
        "SELECT c.blob_id, c.ordinal, k.name FROM chunk c JOIN key k ON k.id = c.key_id"
    )
    where = f"{sql} WHERE c.recipe = ? AND c.blob_id IN (?)"
    for blob_id, *row in sorted(select_in(db, where, blob_ids, (recipe,))):
        keys.setdefault(blob_id, []).append((row[0], row[1]))
    return keys


def absent_keys(
    db: sqlite3.Connection, space_id: int, keys: Iterable[Key]
) -> Iterator[Key]:
    """Return the keys that have no vector in a space and were not refused."""
    unique = list(dict.fromkeys(keys))
    present = {
        key
        for (key,) in select_in(
            db,
            "SELECT k.name FROM key k WHERE (EXISTS(SELECT 1 FROM vector v "
            "WHERE v.space_id = ? AND v.key_id = k.id) OR EXISTS(SELECT 1 "
            "FROM refused r WHERE r.space_id = ? AND r.key_id = k.id)) "
            "AND k.name IN (?)",
            unique,
            (space_id, space_id),
        )
    }
    return (key for key in unique if key not in present)


def count(db: sqlite3.Connection, recipe: str, space_id: int) -> tuple[int, int]:
    """Count the chunks of a recipe, and the refused ones.

    The chunks of blobs that were not read yet are estimated.
    """
    (chunks,) = db.execute(
        "SELECT coalesce(sum(coalesce(chunks, expected)), 0) FROM listing "
        "WHERE recipe = ?",
        (recipe,),
    ).fetchone()
    (refused,) = db.execute(
        "SELECT count(*) FROM refused r JOIN chunk c ON c.key_id = r.key_id "
        "WHERE r.space_id = ? AND c.recipe = ?",
        (space_id, recipe),
    ).fetchone()
    return int(chunks), int(refused)


def workspace_roots(db: sqlite3.Connection) -> dict[int, Path]:
    """Return the folders of the workspaces by their ids."""
    rows = db.execute("SELECT id, root FROM data.workspace")
    return {number: Path(root) for number, root in rows}


def keys_with_vector(
    db: sqlite3.Connection, space: Space, after_number: int, limit: int
) -> list[ListedKey]:
    """Return a page of keys that have a vector in a space: those after a number."""
    workspaces = (
        "SELECT group_concat(DISTINCT f.workspace_id) FROM chunk c "
        "JOIN data.file f ON f.blob_id = c.blob_id "
        "WHERE c.key_id = k.id AND c.recipe = ?"
    )
    rows = db.execute(
        f"SELECT k.id, k.name, ({workspaces}) FROM vector v "  # noqa: S608
        "INDEXED BY vector_key JOIN key k ON k.id = v.key_id "
        "WHERE v.space_id = ? AND v.key_id > ? ORDER BY v.key_id LIMIT ?",
        (space.name.recipe, space.id, after_number, limit),
    )
    return [
        ListedKey(n, key, tuple(sorted(map(int, ids.split(",")))) if ids else ())
        for n, key, ids in rows
    ]


def keys_without_vector(
    db: sqlite3.Connection, space: Space, after_number: int, limit: int
) -> list[ListedKey]:
    """Return a page of chunks' keys without a vector in a space, with refused ones."""
    rows = db.execute(
        "SELECT k.id, k.name FROM key k WHERE k.id > ? AND EXISTS(SELECT 1 "
        "FROM chunk c WHERE c.key_id = k.id AND c.recipe = ?) "
        "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
        "AND v.key_id = k.id) ORDER BY k.id LIMIT ?",
        (after_number, space.name.recipe, space.id, limit),
    )
    return [ListedKey(*row) for row in rows]
