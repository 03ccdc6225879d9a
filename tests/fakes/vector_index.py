"""A vector index in memory, which compares with every vector."""

import math
from collections.abc import Sequence

from byok.index.store.chunk_index import CANDIDATES, ChunkScore, View
from tests.fakes.memory_index import MemoryChunks


class MemoryVectors(MemoryChunks[Sequence[float]]):
    """VectorIndex: compares with every vector by cosine."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def add(self, blob_id: int, vectors: Sequence[Sequence[float]]) -> None:
        if any(len(vector) != self.length for vector in vectors):
            raise ValueError(f"a vector must have {self.length} numbers")
        self.add_chunks(blob_id, vectors)

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
