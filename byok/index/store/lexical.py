"""The protocol of an index over the words of chunks; `open_engine` takes any."""

from collections.abc import Mapping
from typing import Protocol

from byok.index.store.chunk_index import CANDIDATES, ChunkIndex, ChunkScore, View
from byok.index.types import Prepared


class LexicalIndex(ChunkIndex, Protocol):
    """An index over the words of chunks."""

    def add(self, blob_id: int, prepared: Prepared) -> None:
        """Add the chunks of a blob; they are found after `commit`."""

    def search(
        self, terms: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the best chunks of the view, best first; `terms` have weights."""

    def find_marked(
        self, marks: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return chunks of the view that bear one of the marks, best first.

        The score of a chunk is the highest weight among its marks.
        """
