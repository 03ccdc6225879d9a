"""An index of blobs to be given vectors, vectors that follow from a text, embedders."""

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from byok.embeddings.recipe import key_of
from byok.embeddings.types import Key, SpaceName
from byok.index.store.database import INDEXED
from byok.index.store.packing import pack_spans
from byok.index.store.schema import create_tables
from byok.index.types import Span

SPACE = SpaceName("model", 16, "1")


def vector(
    text: str, dimensions: int = 16, model: str = "model"
) -> NDArray[np.float32]:
    """Return a vector of length 1 that this model always makes of a text."""
    seed = hashlib.sha256(f"{model}\0{text}".encode()).digest()
    row = np.random.default_rng(list(seed)).standard_normal(dimensions)
    return (row / np.linalg.norm(row)).astype(np.float32)


def vectors(
    texts: Sequence[str], dimensions: int = 16, model: str = "model"
) -> NDArray[np.float32]:
    """Return a row for each text."""
    return np.array([vector(text, dimensions, model) for text in texts])


def probe(model: str = "model", dimensions: int = 16) -> NDArray[np.float32]:
    """Return the vector of the probe text."""
    return vectors(["probe"], dimensions, model)


def keys(*texts: str) -> list[Key]:
    """Return the keys of texts."""
    return [key_of(text) for text in texts]


class Rows:
    """A database of the code index with blobs, and nothing else in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            create_tables(db)
            db.execute("PRAGMA journal_mode = WAL")

    def add(self, *paths: str, chunks: int = 1) -> list[int]:
        """Add a blob for each path; returns their ids."""
        spans = pack_spans(Span(n, n, 9) for n in range(chunks))
        return [self._add(path, spans) for path in paths]

    def _add(self, path: str, spans: bytes) -> int:
        with closing(sqlite3.connect(self.path)) as db, db:
            cursor = db.execute(
                "INSERT INTO blob(name, path, size, state, spans, index_version) "
                "VALUES(randomblob(32), ?, 1, ?, ?, 1)",
                (path, INDEXED, spans),
            )
            return int(cursor.lastrowid or 0)

    def run(self, sql: str, *values: object) -> None:
        """Change something."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(sql, values)
