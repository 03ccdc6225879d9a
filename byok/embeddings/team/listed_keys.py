"""Which keys this machine has a vector of, which it lacks, and where texts come from.

Reads the database of vectors by a connection of its own, a page at a time, so that
neither filling nor questions wait for it.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from byok.embeddings.store.database import translate_errors
from byok.embeddings.store.listings import keys_of
from byok.embeddings.store.spaces import Space
from byok.embeddings.types import Key


class ListedKey(NamedTuple):
    """A key, the number that orders pages, and the workspaces that have its text."""

    number: int
    key: Key
    workspaces: tuple[int, ...] = ()


class ListedKeys:
    """The keys of one vector store. All methods block."""

    def __init__(self, vectors: Path, index: Path) -> None:
        """Take the files of the vector store and of the code index, both open."""
        self._vectors = vectors
        self._index = index

    def roots(self) -> dict[int, Path]:
        """Return the folders of the workspaces."""
        with self._open() as db:
            rows = db.execute("SELECT id, root FROM data.workspace").fetchall()
        return {number: Path(root) for number, root in rows}

    def with_vector(self, space: Space, after: int, limit: int) -> list[ListedKey]:
        """Return keys that have a vector in a space, those after a number."""
        workspaces = (
            "SELECT group_concat(DISTINCT f.workspace_id) FROM chunk c "
            "JOIN data.file f ON f.blob_id = c.blob_id "
            "WHERE c.key_id = k.id AND c.recipe = ?"
        )
        with self._open() as db:
            rows = db.execute(
                f"SELECT k.id, k.name, ({workspaces}) FROM vector v "  # noqa: S608
                "INDEXED BY vector_key JOIN key k ON k.id = v.key_id "
                "WHERE v.space_id = ? AND v.key_id > ? ORDER BY v.key_id LIMIT ?",
                (space.name.recipe, space.id, after, limit),
            ).fetchall()
        return [ListedKey(n, key, _numbers(found)) for n, key, found in rows]

    def without_vector(self, space: Space, after: int, limit: int) -> list[ListedKey]:
        """Return keys of chunks that have none in a space, refused ones included."""
        with self._open() as db:
            rows = db.execute(
                "SELECT k.id, k.name FROM key k WHERE k.id > ? AND EXISTS(SELECT 1 "
                "FROM chunk c WHERE c.key_id = k.id AND c.recipe = ?) "
                "AND NOT EXISTS(SELECT 1 FROM vector v WHERE v.space_id = ? "
                "AND v.key_id = k.id) ORDER BY k.id LIMIT ?",
                (after, space.name.recipe, space.id, limit),
            ).fetchall()
        return [ListedKey(*row) for row in rows]

    def of_blobs(
        self, space: Space, blob_ids: Iterable[int]
    ) -> dict[int, list[tuple[int, Key]]]:
        """Return the ordinals and keys of the chunks of those blobs that are listed."""
        with self._open() as db:
            return keys_of(db, space.name.recipe, blob_ids)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with translate_errors(self._vectors):
            uri = f"{self._vectors.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as db:
                index = f"{self._index.absolute().as_uri()}?mode=ro"
                db.execute("ATTACH ? AS data", (index,))
                yield db


def _numbers(joined: str | None) -> tuple[int, ...]:
    return tuple(sorted(map(int, joined.split(",")))) if joined else ()
