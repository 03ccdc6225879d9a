"""A vector index in memory, which compares with every vector."""

import math
from collections import Counter
from collections.abc import Sequence

from byok.index.store.chunk_index import CANDIDATES, ChunkScore, View


class MemoryVectors:
    """Compares by cosine; `commit` swaps in what was written."""

    was_new = True
    is_damaged = False
    bytes = 0

    def __init__(self, length: int) -> None:
        self.length = length
        self._next: dict[int, tuple[Sequence[float], ...]] = {}
        self._found: dict[int, tuple[Sequence[float], ...]] = {}

    @property
    def chunks(self) -> int:
        return self.counts().total()

    def add(self, blob_id: int, vectors: Sequence[Sequence[float]]) -> None:
        if any(len(vector) != self.length for vector in vectors):
            raise ValueError(f"a vector must have {self.length} numbers")
        self._next[blob_id] = (*self._next.get(blob_id, ()), *vectors)

    def remove(self, blob_id: int) -> None:
        self._next.pop(blob_id, None)

    def commit(self) -> None:
        self._found = dict(self._next)

    def clear(self) -> None:
        self._next = {}
        self.commit()

    def counts(self) -> Counter[int]:
        return Counter({blob: len(rows) for blob, rows in self._found.items() if rows})

    def close(self) -> None:
        self._next = dict(self._found)

    def search(
        self, vector: Sequence[float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        hits = [
            ChunkScore(blob_id, ordinal, _cosine(vector, one))
            for blob_id, some in self._found.items()
            if blob_id in view.ids
            for ordinal, one in enumerate(some)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit))[:limit]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=True)) / lengths
