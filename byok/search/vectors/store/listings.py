"""What is to have a vector: chunks of blobs with their keys, as rows.

A listing names the blob by id and by name and says which version of the index cut it.
Ids of a replaced data.db mean other files; such a listing does not agree with the row
of the blob, and is deleted before anything is answered.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from byok.search.index.contents import Entry
from byok.search.index.store.schema import INDEXED, SPAN_BYTES, TO_INDEX
from byok.search.vectors.store.database import Space
from byok.search.vectors.types import Key
from byok.storage.database import select_in

_MOST_ASKED = 500


class FillProgress(NamedTuple):
    """How far a space is filled, in chunks of the index.

    `chunks` are to have a vector (an estimate while blobs are not read yet),
    `embedded` have one, `refused` are not taken by the model.
    """

    chunks: int
    embedded: int
    refused: int

    @property
    def share(self) -> float:
        """Which part is done, refused ones included; 1 if there is nothing to do."""
        done = self.embedded + self.refused
        return min(1.0, done / self.chunks) if self.chunks else 1.0


def forget_gone(db: sqlite3.Connection) -> set[int]:
    """Delete listings of blobs that are gone or are other ones now; return their ids.

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
    """List blobs that are not listed yet, inside a transaction.

    Returns how many of them have chunks that are to have vectors.
    """
    found = db.execute(
        "SELECT b.id, b.name, b.index_version, b.path, length(b.spans) / ? "
        "FROM data.blob b WHERE b.state = ? AND b.reason IS NULL "
        "AND length(b.spans) > 0 AND NOT EXISTS(SELECT 1 FROM listing l "
        "WHERE l.recipe = ? AND l.blob_id = b.id)",
        (SPAN_BYTES, INDEXED, recipe),
    ).fetchall()
    rows = [
        (recipe, *names, count if wanted else 0, None if wanted else 0)
        for *names, path, count in found
        for wanted in [is_embedded(path)]
    ]
    db.executemany("INSERT INTO listing VALUES(?, ?, ?, ?, ?, ?)", rows)
    return sum(row[-1] is None for row in rows)


def forget_empty(db: sqlite3.Connection) -> None:
    """Have another look at blobs without chunks: rules or files may have changed."""
    db.execute("DELETE FROM listing WHERE chunks = 0")


def plan(
    db: sqlite3.Connection, recipe: str, asked: Collection[int], limit: int
) -> list[Entry]:
    """Return blobs whose keys are not known yet: asked ones, then the newest files."""
    waiting = "SELECT blob_id FROM listing WHERE recipe = ? AND chunks IS NULL"
    return _in_order(db, waiting, (recipe,), asked, limit)


def plan_missing(
    db: sqlite3.Connection,
    recipe: str,
    space_id: int,
    asked: Collection[int],
    limit: int,
) -> list[Entry]:
    """Return blobs that have a key without a vector, in the order of `plan`.

    Compares all chunks: a third of a second for 300,000.
    """
    missing = (
        "SELECT DISTINCT c.blob_id FROM chunk c WHERE c.recipe = ? "
        "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
        "AND v.key_id = c.key_id) AND NOT EXISTS(SELECT 1 FROM refused r "
        "WHERE r.space_id = ? AND r.key_id = c.key_id)"
    )
    return _in_order(db, missing, (recipe, space_id, space_id), asked, limit)


def _in_order(
    db: sqlite3.Connection,
    blobs: str,
    values: Sequence[object],
    asked: Collection[int],
    limit: int,
) -> list[Entry]:
    some = list(asked)[:_MOST_ASKED]
    first = f"b.id IN ({','.join(map(str, map(int, some)))})"
    rows = db.execute(
        f"SELECT b.id, b.path, b.spans FROM data.blob b WHERE b.id IN ({blobs}) "  # noqa: S608
        f"AND b.state = ? ORDER BY {first} DESC, coalesce((SELECT max(f.mtime_ns) "
        "FROM data.file f WHERE f.blob_id = b.id), 0) DESC, b.id DESC LIMIT ?",
        (*values, INDEXED, limit),
    )
    found = [Entry(*row) for row in rows]
    turns = {blob_id: turn for turn, blob_id in enumerate(some)}
    found.sort(key=lambda blob: turns.get(blob.blob_id, len(turns)))
    return found


def list_chunks(
    db: sqlite3.Connection, recipe: str, blobs: Mapping[int, Sequence[tuple[int, Key]]]
) -> list[int]:
    """Note the keys of blobs' chunks by their ordinals, inside a transaction.

    Returns the blobs whose keys were not known, or were others: what is masked in a
    text may change with a version of byok. A known blob without keys cannot be read
    now, and is left as it is.
    """
    known = keys_of(db, recipe, blobs)
    fresh = [
        blob_id
        for blob_id, keys in blobs.items()
        if known.get(blob_id) != [*keys] and (keys or blob_id not in known)
    ]
    ids = [(recipe, blob_id) for blob_id in fresh]
    db.executemany("DELETE FROM chunk WHERE recipe = ? AND blob_id = ?", ids)
    rows = [(blob_id, *row) for blob_id in fresh for row in blobs[blob_id]]
    db.executemany("INSERT OR IGNORE INTO key(name) VALUES(?)", [r[2:] for r in rows])
    db.executemany(
        "INSERT INTO chunk SELECT ?, ?, ?, id FROM key WHERE name = ?",
        [(recipe, *row) for row in rows],
    )
    db.executemany(
        "UPDATE listing SET chunks = ? WHERE recipe = ? AND blob_id = ?",
        [(len(blobs[blob_id]), recipe, blob_id) for blob_id in fresh],
    )
    return fresh


def keys_of(
    db: sqlite3.Connection, recipe: str, blob_ids: Iterable[int]
) -> dict[int, list[tuple[int, Key]]]:
    """Return the keys of blobs that were listed, by ordinal and in order."""
    found: dict[int, list[tuple[int, Key]]] = {}
    sql = (
        "SELECT c.blob_id, c.ordinal, k.name FROM chunk c JOIN key k ON k.id = c.key_id"
    )
    where = f"{sql} WHERE c.recipe = ? AND c.blob_id IN (?)"
    for blob_id, *row in sorted(select_in(db, where, blob_ids, (recipe,))):
        found.setdefault(blob_id, []).append((row[0], row[1]))
    return found


def absent_keys(
    db: sqlite3.Connection, space_id: int, keys: Iterable[Key]
) -> Iterator[Key]:
    """Give those of the keys that have no vector in a space and were not refused."""
    wanted = list(dict.fromkeys(keys))
    there = {
        key
        for (key,) in select_in(
            db,
            "SELECT k.name FROM key k WHERE (EXISTS(SELECT 1 FROM vector v "
            "WHERE v.space_id = ? AND v.key_id = k.id) OR EXISTS(SELECT 1 "
            "FROM refused r WHERE r.space_id = ? AND r.key_id = k.id)) "
            "AND k.name IN (?)",
            wanted,
            (space_id, space_id),
        )
    }
    return (key for key in wanted if key not in there)


def count(db: sqlite3.Connection, recipe: str, space_id: int) -> tuple[int, int]:
    """Count the chunks of a recipe, and those of them that a model refused.

    Chunks of blobs that were not read yet are estimated.
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


# Which keys this machine has a vector of, and which it lacks, a page at a time.


class ListedKey(NamedTuple):
    """A key, the number that orders pages, and the workspaces that have its text."""

    number: int
    key: Key
    workspaces: tuple[int, ...] = ()


def keys_with_vector(
    db: sqlite3.Connection, space: Space, after: int, limit: int
) -> list[ListedKey]:
    """Return keys that have a vector in a space, those after a number."""
    workspaces = (
        "SELECT group_concat(DISTINCT f.workspace_id) FROM chunk c "
        "JOIN data.file f ON f.blob_id = c.blob_id "
        "WHERE c.key_id = k.id AND c.recipe = ?"
    )
    rows = db.execute(
        f"SELECT k.id, k.name, ({workspaces}) FROM vector v "  # noqa: S608
        "INDEXED BY vector_key JOIN key k ON k.id = v.key_id "
        "WHERE v.space_id = ? AND v.key_id > ? ORDER BY v.key_id LIMIT ?",
        (space.name.recipe, space.id, after, limit),
    )
    return [ListedKey(n, key, _numbers(found)) for n, key, found in rows]


def keys_without_vector(
    db: sqlite3.Connection, space: Space, after: int, limit: int
) -> list[ListedKey]:
    """Return keys of chunks that have none in a space, refused ones included."""
    rows = db.execute(
        "SELECT k.id, k.name FROM key k WHERE k.id > ? AND EXISTS(SELECT 1 "
        "FROM chunk c WHERE c.key_id = k.id AND c.recipe = ?) "
        "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
        "AND v.key_id = k.id) ORDER BY k.id LIMIT ?",
        (after, space.name.recipe, space.id, limit),
    )
    return [ListedKey(*row) for row in rows]


def _numbers(joined: str | None) -> tuple[int, ...]:
    return tuple(sorted(map(int, joined.split(",")))) if joined else ()
