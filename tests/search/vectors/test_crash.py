"""Killed at any moment, filling loses nothing stored and asks for nothing again.

`python -m tests.search.vectors.test_crash FOLDER SEED` fills, while blobs come and go,
until it is killed. It writes to FOLDER/asked which texts the model was asked for, and
to FOLDER/stored which keys were acknowledged.
"""

import asyncio
import os
import random
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from byok.search.index.contents import Entry
from byok.search.index.store.chunk_index import View
from byok.search.index.types import Span
from byok.search.vectors.filling import Filling
from byok.search.vectors.recipe import ChunkText, key_of
from byok.search.vectors.store.database import Space
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.types import EmbeddingState, Key
from tests.fakes.kills import heard, kill_one, say
from tests.fakes.vectors import FakeEmbedder, Rows, vector

_FILES, _CHUNKS, _MOST_FILES = 40, 7, 2500
_DIMENSIONS = 32


class PlainContents:
    """Contents whose lines follow from the path of a blob."""

    def __init__(self, index: Path) -> None:
        self._index = index

    def entries(self, blob_ids: Iterable[int]) -> dict[int, Entry]:
        with closing(sqlite3.connect(self._index)) as db:
            rows = db.execute("SELECT id, path, spans FROM blob").fetchall()
        wanted = set(blob_ids)
        return {row[0]: Entry(*row) for row in rows if row[0] in wanted}

    def lines_of(self, entry: Entry) -> list[str]:
        return [f"{entry.path} {n}" for n in range(_CHUNKS)]


class PlainEngine:
    """What filling uses of an engine."""

    def __init__(self, index: Path) -> None:
        self.indexer = self
        self.open_tasks = 0
        self.contents = PlainContents(index)


def texts_of(path: str, lines: Sequence[str], spans: Sequence[Span]) -> list[ChunkText]:
    """A chunk's text is its line; every third one is the same in all files."""
    texts = ["shared" if n % 3 == 2 else lines[n] for n in range(len(spans))]
    return [ChunkText(n, key_of(text), text) for n, text in enumerate(texts)]


class SayingStore(VectorStore):
    """Writes down which keys it stored."""

    said: Path

    def put(
        self, space: Space, keys: Sequence[Key], vectors: NDArray[np.float32]
    ) -> list[Key]:
        refused = super().put(space, keys, vectors)
        say(self.said, (key.hex() for key in keys))
        return refused


class SayingEmbedder(FakeEmbedder):
    """Writes down what it is asked for."""

    def __init__(self, said: Path) -> None:
        super().__init__(_DIMENSIONS)
        self._said = said

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        say(self._said, texts)
        return await super().embed_documents(texts)


async def live(folder: Path, seed: int) -> None:
    """Fill until somebody kills this process."""
    rng = random.Random(seed)
    rows = Rows.of(folder / "data.db")
    print("opening", flush=True)
    store = SayingStore(folder / "vectors.db", rows.path)
    store.said = folder / "stored"
    filling = Filling(
        store,
        PlainEngine(rows.path),  # type: ignore[arg-type]
        SayingEmbedder(folder / "asked"),
        texts_of=texts_of,
        sleep=lambda seconds: asyncio.sleep(0.001),
    )
    filling.start()
    number = rng.randrange(10**9)
    while True:
        if rows.count() < _MOST_FILES:
            names = [f"{number}_{n}.py" for n in range(_FILES)]
            await asyncio.to_thread(rows.add, *names, chunks=_CHUNKS)
            number += 1
        if rng.random() < 0.3:
            rows.run("DELETE FROM blob WHERE id % 50 = ?", rng.randrange(50))
        assert filling.state is not EmbeddingState.FAILED
        await asyncio.sleep(rng.random() * 0.02)


def _look(folder: Path) -> set[str]:
    """Open the store as the next start does; returns the keys that have a vector."""
    store = VectorStore(folder / "vectors.db", folder / "data.db")
    try:
        assert not (folder / "vectors.db.damaged-1").exists()
        every = store.spaces()
        return _check(folder, store, every[0]) if every else set()
    finally:
        for opened in store._open.values():
            opened.close()
        store._database.close(clean=False)


def _check(folder: Path, store: VectorStore, space: Space) -> set[str]:
    """Check that every chunk is found by its own text, and nothing else is there."""
    with closing(sqlite3.connect(folder / "vectors.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = db.execute(
            "SELECT k.name FROM vector v JOIN key k ON k.id = v.key_id"
        ).fetchall()
    keys = {name.hex() for (name,) in names}
    assert len(keys) == len(names)
    assert keys.issuperset(heard(folder / "stored"))
    contents = PlainContents(folder / "data.db")
    with closing(sqlite3.connect(folder / "data.db")) as db:
        paths = dict(db.execute("SELECT id, path FROM blob").fetchall())
    view = View("all", frozenset(paths), 0)
    for blob_id in random.Random(1).sample(sorted(paths), min(30, len(paths))):
        entry = contents.entries([blob_id])[blob_id]
        for chunk in texts_of(entry.path, contents.lines_of(entry), entry.spans)[:2]:
            question = vector(chunk.text, _DIMENSIONS)
            found = store.near(space, question, view, [blob_id])
            if blob_id in found.best and chunk.key.hex() in keys:
                assert found.nearest[0][:2] == (blob_id, chunk.ordinal)
                assert found.best[blob_id].ordinal == chunk.ordinal
    return keys


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.case("F50")
@pytest.mark.slow
def test_filling_survives_three_kills(tmp_path: Path) -> None:
    rng = random.Random(os.getpid())
    Rows(tmp_path / "data.db").add("first.py", chunks=_CHUNKS)
    kept: set[str] = set()
    for _ in range(3):
        before = len(heard(tmp_path / "asked"))
        kill_one("tests.search.vectors.test_crash", tmp_path, rng, 1.2)
        asked = heard(tmp_path / "asked")[before:]
        again = kept.intersection(key_of(text).hex() for text in asked)
        assert not again, f"{len(again)} texts were embedded again"
        kept = _look(tmp_path)


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2])))
