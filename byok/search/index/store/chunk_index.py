"""What byok needs of any index over chunks, and the errors of one.

A second engine is one more file: a class with the methods of `LexicalIndex`,
which passes the tests of that protocol, and is named in `store.py`. Vectors are no such
engine: they come later than the words, from elsewhere, and have a store of their own
(the room `byok/search/vectors/`).

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

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from byok.core.errors import (
    ByokError,
    DiskFull,
    IndexFailed,
    IndexInUse,
    IndexLacksMemory,
)
from byok.core.platform.memory import MEMORY_HINT, lacks_memory, speaks_of_memory
from byok.search.index.types import Prepared

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


class LexicalIndex(Protocol):
    """An index over the words of chunks."""

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

    def add(self, blob_id: int, prepared: Prepared) -> None:
        """Add the chunks of a blob; they are found after `commit`."""

    def search(
        self, terms: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return the best chunks of the view, best first; `terms` have weights."""

    def share_of(self, term: str) -> float:
        """Return which share of all chunks has a term, removed ones included."""

    def find_marked(
        self, marks: Mapping[str, float], view: View, limit: int = CANDIDATES
    ) -> list[ChunkScore]:
        """Return chunks of the view that bear one of the marks, best first.

        The score of a chunk is the highest weight among its marks.
        """

    def close(self) -> None:
        """Release its files; what was not committed is lost."""


def remove_all(index: LexicalIndex, blob_ids: Iterable[int]) -> None:
    """Remove the chunks of several blobs."""
    for blob_id in blob_ids:
        index.remove(blob_id)


# Errors of the lexical index, and their translation from tantivy's.


_LONGEST = 150  # of its own words
# Of tantivy on Unix and on Windows, of Python, of SQLite.
_FULL = re.compile(r"os error (28|112)\b|(?i:no space left)|disk is full")
_MEND = "A full disk needs room; `byok index rebuild` mends a damaged index."


@contextmanager
def translate_errors() -> Iterator[None]:
    """Turn tantivy's errors into byok's, also its panics (a BaseException)."""
    try:
        yield
    except ValueError as error:
        if "LockBusy" in str(error):
            raise index_in_use() from error
        raise _index_error("cannot be used", error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise _index_error("is damaged", error) from error
        raise


def index_in_use() -> IndexInUse:
    """Return the error for an index that another process has."""
    return IndexInUse(
        "Another byok process is using the index.",
        hint="Wait for it, or start the daemon (byok serve) so that all commands share "
        "it.",
    )


def explain_failure(error: Exception) -> ByokError:
    """Return why nothing can be indexed, and what to do, without names of classes."""
    if isinstance(error, ByokError):
        return error
    if lacks_memory(error):
        return lack_of_memory()
    return _index_error("cannot be used", error)


def lack_of_memory() -> IndexLacksMemory:
    """Return the error for an index that byok has too little memory to use."""
    return IndexLacksMemory(
        "byok has too little memory for the code index.", hint=MEMORY_HINT
    )


def _index_error(how: str, error: BaseException) -> IndexFailed:
    if _FULL.search(str(error)):
        return DiskFull(
            "The disk is full; the index cannot be written.",
            hint="Free some disk space.",
        )
    if speaks_of_memory(str(error)):
        return lack_of_memory()
    return IndexFailed(f"The index {how}: {str(error)[:_LONGEST]}.", hint=_MEND)
