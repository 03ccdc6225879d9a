"""What byok needs of any index over chunks, whichever engine is behind it.

A second engine is one more file: a class with the methods of `LexicalIndex`
(`lexical.py`), which passes the tests of that protocol. Vectors are no such engine:
they come later than the words, from elsewhere, and have a store of their own (the room
`byok/embeddings/`).
What makes this seam narrow is that the index is never the truth. SQLite holds the rows;
an index can be emptied at any time and is filled again from contents and files. So
there is no update (`remove`, then `add`), no transaction but `commit`, and `counts`, by
which recovery finds documents that are missing or left over after a crash.

What an engine must promise, because batches and recovery rely on it:

- `remove` takes what was added before it, never what is added after it, also when one
  `commit` covers both.
- What was not committed is gone after a crash, and may be gone after any error
  (IndexFailed): the caller then adds it again.
- `add`, `remove`, `commit` and `clear` are called by one thread; `search`, `counts` and
  the properties by any, also meanwhile.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

CANDIDATES = 400  # chunks that ranking looks at


class ChunkScore(NamedTuple):
    """A chunk that matches: its blob, which of the blob's spans, and its score.

    The score is that of the index: BM25 for words, the cosine for vectors.
    """

    blob_id: int
    ordinal: int
    score: float


class View(NamedTuple):
    """The blobs that a question is about; `key` names the set for caches.

    `chunks` is about how many chunks they have, 0 where that is unknown.
    """

    key: str
    ids: frozenset[int]
    chunks: int


class ChunkIndex(Protocol):
    """What batches and recovery need of any index: all but `add` and `search`."""

    @property
    def was_new(self) -> bool:
        """Whether it started empty when it was opened: all must be indexed again."""

    @property
    def chunks(self) -> int:
        """How many chunks can be found."""

    @property
    def is_damaged(self) -> bool:
        """Whether its files are damaged."""

    @property
    def bytes(self) -> int:
        """How much of the disk it takes."""

    def remove(self, blob_id: int) -> None:
        """Remove the chunks of a blob that were added before."""

    def commit(self) -> None:
        """Make what was added and removed durable and visible."""

    def clear(self) -> None:
        """Remove everything, also what is not committed; repairs a damaged index."""

    def counts(self) -> Counter[int]:
        """Return how many chunks each blob has in the index."""

    def close(self) -> None:
        """Release its files; what was not committed is lost."""


def remove_all(index: ChunkIndex, blob_ids: Iterable[int]) -> None:
    """Remove the chunks of several blobs."""
    for blob_id in blob_ids:
        index.remove(blob_id)
