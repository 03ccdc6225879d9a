"""The protocol of an index over vectors of chunks.

Who makes the vectors is no matter of the index: they come with the blob, one for each
of its chunks in their order, and a question comes as a vector of the same length.
"""

from collections.abc import Sequence
from typing import Protocol

from byok.index.store.chunk_index import CANDIDATES, ChunkIndex, ChunkScore, View


class VectorIndex(ChunkIndex, Protocol):
    """An index over vectors of chunks, compared by their cosine."""

    @property
    def length(self) -> int:
        """How many numbers a vector has."""

    def add(self, blob_id: int, vectors: Sequence[Sequence[float]]) -> None:
        """Add the chunks of a blob; they are found after `commit`.

        Raises:
            ValueError: a vector has another length than the index.
        """

    def search(
        self, vector: Sequence[float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the nearest chunks of the view, nearest first; scores are cosines."""
