"""Blob rows: file versions by name, and the stored contents."""

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from byok.core.code_query import Upload
from byok.search.index.store.schema import INDEXED, NAMED, TO_INDEX, TO_REMOVE
from byok.search.index.types import SkipReason, blob_name
from byok.storage.database import select_in

_log = logging.getLogger(__name__)
_COMPRESSION_LEVEL = 1  # twice as fast as 6, a tenth larger
_KNOWN_COLUMNS = (
    "b.id, b.state, EXISTS(SELECT 1 FROM content INDEXED BY content_size "
    "WHERE blob_id = b.id), b.reason"
)


class Known(NamedTuple):
    """The row of a blob name; `held` tells that its content is stored."""

    id: int
    state: int
    held: bool
    reason: str | None

    @property
    def is_held(self) -> bool:
        """Whether no upload is needed: content is stored, or there is a `reason`."""
        return self.state != NAMED and (self.held or self.reason is not None)


def find_known(db: sqlite3.Connection, names: Iterable[bytes]) -> dict[bytes, Known]:
    """Look up names; an alias yields the blob that it stands for."""
    requested = list(names)
    known = _find_exact(db, requested)
    others = [n for n in requested if n not in known or known[n].state == NAMED]
    for name, *row in select_in(
        db,
        f"SELECT a.name, {_KNOWN_COLUMNS} "  # noqa: S608
        "FROM alias a JOIN blob b ON b.id = a.blob_id WHERE a.name IN (?)",
        others,
    ):
        known[name] = Known(*row)
    return known


def _find_exact(db: sqlite3.Connection, names: Iterable[bytes]) -> dict[bytes, Known]:
    sql = f"SELECT b.name, {_KNOWN_COLUMNS} FROM blob b WHERE b.name IN (?)"  # noqa: S608
    rows = select_in(db, sql, names)
    return {name: Known(*row) for name, *row in rows}


def names_of(db: sqlite3.Connection, blob_ids: Iterable[int]) -> dict[int, list[bytes]]:
    """Return all names of blobs, byok's first, then those of clients."""
    requested = list(blob_ids)
    names_by_id = {
        blob_id: [name]
        for blob_id, name in select_in(
            db, "SELECT id, name FROM blob WHERE id IN (?)", requested
        )
    }
    for blob_id, name in select_in(
        db, "SELECT blob_id, name FROM alias WHERE blob_id IN (?)", requested
    ):
        if blob_id in names_by_id:
            names_by_id[blob_id].append(name)
    return names_by_id


def resolve_aliases(db: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Replace ids of bare names that became aliases by the ids of their blobs.

    A name becomes one if it was in a checkpoint before its file was uploaded.
    """
    moved = dict(
        db.execute(
            "SELECT b.id, a.blob_id FROM blob b JOIN alias a ON a.name = b.name "
            "WHERE b.state <> 1 AND b.state = ?",
            (NAMED,),
        ).fetchall()
    )
    return {moved.get(blob_id, blob_id) for blob_id in ids} if moved else set(ids)


def register(db: sqlite3.Connection, names: Iterable[bytes]) -> dict[bytes, int]:
    """Return the id of each name; unknown names get a row without content."""
    requested = list(names)
    ids = {name: entry.id for name, entry in find_known(db, requested).items()}
    for name in requested:
        if name not in ids:
            cursor = db.execute(
                "INSERT INTO blob(name, path, size, state) VALUES(?, '', 0, ?)",
                (name, NAMED),
            )
            ids[name] = int(cursor.lastrowid or 0)
    return ids


def store(
    db: sqlite3.Connection,
    uploads: Sequence[Upload],
    refused: Mapping[int, SkipReason],
    day: int,
) -> tuple[list[bytes], list[int]]:
    """Store uploads inside a transaction; return their names, and the ids to index.

    The name is computed here; a different one of the client becomes an alias. Uploads
    in `refused` (by position) are stored with name and reason, without content. Two
    files can share a name, as the hash has no separator: the first one keeps it.
    """
    names = [blob_name(upload.path, upload.content) for upload in uploads]
    existing = _find_exact(db, dict.fromkeys(names))
    new_ids: list[int] = []
    for index, (upload, name) in enumerate(zip(uploads, names, strict=True)):
        entry = existing.get(name)
        reason = refused.get(index)
        if entry is None or not entry.is_held or entry.state == TO_REMOVE:
            entry = _store_upload(db, upload, name, entry, reason, day)
            existing[name] = entry
            if entry.state == TO_INDEX:
                new_ids.append(entry.id)
        if upload.name not in (b"", name):
            db.execute(
                "INSERT OR IGNORE INTO alias SELECT ?, ? "
                "WHERE NOT EXISTS(SELECT 1 FROM blob WHERE name = ? AND state <> ?)",
                (upload.name, entry.id, upload.name, NAMED),
            )
    return names, new_ids


def _store_upload(
    db: sqlite3.Connection,
    upload: Upload,
    name: bytes,
    entry: Known | None,
    reason: SkipReason | None,
    day: int,
) -> Known:
    indexed = entry is not None and entry.state == INDEXED
    path = "" if reason is SkipReason.NOT_A_FILE else upload.path  # may be too long
    state = INDEXED if reason or indexed else TO_INDEX
    if entry is None:
        cursor = db.execute(
            "INSERT INTO blob(name, path, size, state, reason, used) "
            "VALUES(?, ?, ?, ?, ?, ?)",
            (name, path, len(upload.content), state, reason, day),
        )
        blob_id = int(cursor.lastrowid or 0)
        db.execute("DELETE FROM alias WHERE name = ?", (name,))  # of another blob
    else:
        blob_id = entry.id
        db.execute(
            "UPDATE blob SET path = ?, size = ?, state = ?, reason = ?, used = ?, "
            # A workspace's file may be in the middle of its indexing, with its spans.
            "spans = iif(state IN (?, ?), spans, x'') WHERE id = ?",
            (
                *(path, len(upload.content), state, reason, day),
                *(INDEXED, TO_INDEX, blob_id),
            ),
        )
    if reason is None:
        store_content(db, blob_id, upload.content)
    return Known(blob_id, state, reason is None, reason)


def store_content(db: sqlite3.Connection, blob_id: int, content: bytes) -> bool:
    """Store the content of a blob; False if it is a bare name or being removed."""
    packed = zlib.compress(content, _COMPRESSION_LEVEL)
    cursor = db.execute(
        "INSERT OR REPLACE INTO content "
        "SELECT id, ?, ? FROM blob WHERE id = ? AND state NOT IN (?, ?)",
        (packed, len(packed), blob_id, TO_REMOVE, NAMED),
    )
    return cursor.rowcount > 0


def content_of(db: sqlite3.Connection, blob_id: int) -> bytes | None:
    """Return the content of a blob, None if it is not stored, or damaged."""
    row = db.execute(
        "SELECT b.name, b.path, c.packed FROM blob b "
        "JOIN content c ON c.blob_id = b.id WHERE b.id = ?",
        (blob_id,),
    ).fetchone()
    if row is None:
        return None
    name, path, packed = row
    try:
        content = zlib.decompress(packed)
    except zlib.error:
        content = b""
    if blob_name(path, content) != name:
        _log.error("the stored content of blob %d is damaged", blob_id)
        return None
    return content


def touch(db: sqlite3.Connection, ids: Iterable[int], day: int) -> None:
    """Record that blobs were used today; writes only rows that change."""
    db.executemany(
        "UPDATE blob SET used = ? WHERE id = ? AND used < ?",
        [(day, blob_id, day) for blob_id in ids],
    )
