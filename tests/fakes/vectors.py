"""Blobs to be given vectors, vectors that follow from a text, and embedders."""

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from byok.search.index.store.schema import INDEX, INDEXED, pack_spans
from byok.search.index.types import Span
from byok.search.vectors.recipe import key_of
from byok.search.vectors.types import EmbeddingTarget, Key, SpaceName

if TYPE_CHECKING:
    pass

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
    return np.array([vector(text, dimensions, model) for text in texts])


def probe(model: str = "model") -> NDArray[np.float32]:
    """Return the vector of the probe text."""
    return vectors(["probe"], model=model)


def keys(*texts: str) -> list[Key]:
    return [key_of(text) for text in texts]


class Rows:
    """A database of the code index with blobs, and nothing else in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            INDEX.create_tables(db)
            db.execute("PRAGMA journal_mode = WAL")

    @classmethod
    def of(cls, path: Path) -> "Rows":
        """Use a database that exists."""
        made = cls.__new__(cls)
        made.path = path
        return made

    def count(self) -> int:
        """How many blobs there are."""
        with closing(sqlite3.connect(self.path)) as db:
            return int(db.execute("SELECT count(*) FROM blob").fetchone()[0])

    def add(self, *paths: str, chunks: int = 1) -> list[int]:
        """Add a blob for each path; returns their ids."""
        spans = pack_spans(Span(n, n, 9) for n in range(chunks))
        with closing(sqlite3.connect(self.path)) as db, db:
            return [_add(db, path, spans) for path in paths]

    def run(self, sql: str, *values: object) -> None:
        """Change something."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.execute(sql, values)


def _add(db: sqlite3.Connection, path: str, spans: bytes) -> int:
    cursor = db.execute(
        "INSERT INTO blob(name, path, size, state, spans, index_version) "
        "VALUES(randomblob(32), ?, 1, ?, ?, 1)",
        (path, INDEXED, spans),
    )
    return int(cursor.lastrowid or 0)


class FakeEmbedder:
    """An Embedder whose vectors follow from text and model; it fails as it is told.

    `asked` are all texts of code in their order, `sizes` how many came at once.
    `failures` are raised one after another before anything is answered, `failure` by
    everything. A text that contains a word of `refuses` has a row of zeros.
    """

    def __init__(self, dimensions: int = 16) -> None:
        self.model = "model"  # its name
        self.weights = "model"  # what is behind the name
        self.recipe = "1"
        self.dimensions = dimensions
        self.asked: list[str] = []
        self.questions: list[str] = []
        self.sizes: list[int] = []
        self.probes = 0
        self.failures: list[Exception] = []
        self.failure: Exception | None = None
        self.refuses: tuple[str, ...] = ()
        self.gate = asyncio.Event()
        self.gate.set()
        self.on_batch: Callable[[int], None] = lambda number: None

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.gate.wait()
        self._fail()
        self.asked += texts
        self.sizes.append(len(texts))
        self.on_batch(len(self.sizes))
        rows = vectors(texts, self.dimensions, self.weights)
        for row, text in enumerate(texts):
            if any(word in text for word in self.refuses):
                rows[row] = 0
        return rows

    async def embed_question(self, text: str) -> NDArray[np.float32]:
        self.questions.append(text)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return vector(text, self.dimensions, self.weights)

    async def probe(self) -> tuple[SpaceName, NDArray[np.float32]]:
        self._fail()
        self.probes += 1
        name = SpaceName(self.model, self.dimensions, self.recipe)
        return name, vector("probe", self.dimensions, self.weights)

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if self.failure is not None:
            raise self.failure


LOCAL = EmbeddingTarget("near", "localhost:11434", "model", is_local=True, price=0.0)
FAR = EmbeddingTarget("far", "api.example:443", "model", is_local=False, price=0.02)
