"""A second lexical index: in memory, in plain Python, by the same contract.

It keeps nothing on disk, so it is empty at every start and filled by recovery.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from byok.search.index.store.chunk_index import CANDIDATES, ChunkScore, View
from byok.search.index.types import Prepared

_WEIGHTS = (1.0, 0.3, 0.5)  # words, symbols, path
_K1, _B = 1.2, 0.75
T = TypeVar("T")


class _Chunk(NamedTuple):
    ordinal: int
    fields: tuple[Counter[str], Counter[str], Counter[str]]
    marks: frozenset[str]


class MemoryChunks(Generic[T]):
    """ChunkIndex: chunks of any kind in memory; `commit` swaps in what was written."""

    was_new = True
    is_damaged = False
    bytes = 0

    def __init__(self) -> None:
        self._next: dict[int, tuple[T, ...]] = {}
        self._found: dict[int, tuple[T, ...]] = {}

    @property
    def chunks(self) -> int:
        return self.counts().total()

    def add_chunks(self, blob_id: int, chunks: Iterable[T]) -> None:
        self._next[blob_id] = (*self._next.get(blob_id, ()), *chunks)

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


class MemoryIndex(MemoryChunks[_Chunk]):
    """LexicalIndex: searches every chunk with BM25."""

    def __init__(self, folder: Path) -> None:
        """Begin empty; the folder is not used."""
        super().__init__()

    def add(self, blob_id: int, prepared: Prepared) -> None:
        path = Counter(prepared.path_terms.split())
        self.add_chunks(
            blob_id,
            (
                _Chunk(
                    n,
                    (Counter(one.body.split()), Counter(one.symbols.split()), path),
                    frozenset(one.marks.split()),
                )
                for n, one in enumerate(prepared.documents)
            ),
        )

    def search(
        self, terms: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        found = self._found
        worth: dict[tuple[int, int], float] = defaultdict(float)
        for term, weight in terms.items():
            for place, boost in enumerate(_WEIGHTS):
                for key, score in _bm25(found, term, place).items():
                    worth[key] += weight * boost * score
        hits = [
            ChunkScore(blob_id, ordinal, score)
            for (blob_id, ordinal), score in worth.items()
            if blob_id in view.ids
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit))[:limit]

    def find_marked(
        self, marks: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        hits = [
            ChunkScore(blob_id, one.ordinal, max(marks[mark] for mark in borne))
            for blob_id, some in self._found.items()
            for one in some
            if blob_id in view.ids and (borne := marks.keys() & one.marks)
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit))[:limit]


def _bm25(
    chunks: Mapping[int, tuple[_Chunk, ...]], term: str, place: int
) -> dict[tuple[int, int], float]:
    """Return the score of one word in one field, for each chunk that has it."""
    rows = {
        (blob_id, one.ordinal): one.fields[place]
        for blob_id, some in chunks.items()
        for one in some
    }
    matches = {key: words for key, words in rows.items() if term in words}
    mean = sum(words.total() for words in rows.values()) / max(1, len(rows))
    rare = math.log(1 + (len(rows) - len(matches) + 0.5) / (len(matches) + 0.5))
    return {
        key: rare * words[term] * (_K1 + 1)
        / (words[term] + _K1 * (1 - _B + _B * words.total() / mean))
        for key, words in matches.items()
    }  # fmt: skip
