"""Chunks that a search finds, the view that it searches, and the errors of an index."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from byok.core.errors import (
    ByokError,
    DiskFull,
    IndexFailed,
    IndexInUse,
    IndexLacksMemory,
)
from byok.core.platform.process import MEMORY_HINT, lacks_memory, speaks_of_memory

CANDIDATES = 400  # chunks that are ranked
_MAX_MESSAGE_CHARS = 150  # of an error's own text
# How tantivy on Unix and on Windows, Python and SQLite report a full disk.
_FULL = re.compile(r"os error (28|112)\b|(?i:no space left)|disk is full")
_REPAIR_HINT = "A full disk needs room; `byok index rebuild` mends a damaged index."


class ChunkScore(NamedTuple):
    """A matching chunk: its blob, its index in the blob's spans, and its score.

    The score is BM25 for words, the cosine for vectors.
    """

    blob_id: int
    ordinal: int
    score: float


class View(NamedTuple):
    """The blobs that a question is about; `key` identifies the set in caches.

    `chunks` is an estimate of the number of their chunks, 0 if unknown.
    """

    key: str
    ids: frozenset[int]
    chunks: int


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate tantivy's errors to byok's, even its panics (a BaseException)."""
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
    """Return the error for an index that another process has open."""
    return IndexInUse(
        "Another byok process is using the index.",
        hint="Wait for it, or start the daemon (byok serve) so that all commands share "
        "it.",
    )


def explain_failure(error: Exception) -> ByokError:
    """Return the error to show to users if nothing can be indexed."""
    if isinstance(error, ByokError):
        return error
    if lacks_memory(error):
        return lack_of_memory()
    return _index_error("cannot be used", error)


def lack_of_memory() -> IndexLacksMemory:
    """Return the error for too little memory to use the index."""
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
    return IndexFailed(
        f"The index {how}: {str(error)[:_MAX_MESSAGE_CHARS]}.", hint=_REPAIR_HINT
    )
