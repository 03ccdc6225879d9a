"""Reads blobs, and makes the texts of their chunks."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from byok.embeddings.recipe import ChunkText
from byok.embeddings.store.listings import ListedBlob
from byok.embeddings.types import Key
from byok.index.contents import Contents
from byok.index.types import Span

# Makes the texts of a blob's chunks: path, lines, spans.
TextsOf: TypeAlias = Callable[[str, Sequence[str], Sequence[Span]], list[ChunkText]]
# Texts by blob; None for one that cannot be read.
Texts: TypeAlias = dict[int, list[ChunkText] | None]

_BLOBS, _CHUNKS = 24, 128  # in a group; one of both is enough
_SPAN_BYTES = 12
# Seconds of computing after which the thread rests, so that the event loop, which waits
# for the interpreter, need not wait until it is taken away: that takes 5 ms.
_BREATH, _REST = 0.001, 0.001
_TURN = 0.001  # seconds that a thread may keep the interpreter from the event loop


@contextmanager
def quick_turns() -> Iterator[None]:
    """Let the event loop wait at most a millisecond for threads that compute."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def group(blobs: Iterable[ListedBlob]) -> Iterator[list[ListedBlob]]:
    """Cut blobs into groups that are read at once."""
    some: list[ListedBlob] = []
    chunks = 0
    for blob in blobs:
        some.append(blob)
        chunks += len(blob.spans) // _SPAN_BYTES
        if len(some) >= _BLOBS or chunks >= _CHUNKS:
            yield some
            some, chunks = [], 0
    if some:
        yield some


def read_texts(
    contents: Contents, blobs: Sequence[ListedBlob], texts_of: TextsOf
) -> Texts:
    """Return the texts of each blob's chunks; None if it cannot be read now.

    Blocks: reads files, and computes for a millisecond a file.
    """
    entries = contents.entries([blob.blob_id for blob in blobs])
    found: Texts = {}
    breath = time.monotonic()
    for blob in blobs:
        if time.monotonic() - breath > _BREATH:
            time.sleep(_REST)
            breath = time.monotonic()
        entry = entries.get(blob.blob_id)
        lines = None if entry is None else contents.lines_of(entry)
        if entry is None or lines is None or entry.packed != blob.spans:
            found[blob.blob_id] = None
        else:
            found[blob.blob_id] = texts_of(entry.path, lines, entry.spans)
    return found


def keys_of(found: Texts) -> dict[int, list[tuple[int, Key]]]:
    """Return the keys of each blob's chunks with their ordinals."""
    return {
        blob_id: [(chunk.ordinal, chunk.key) for chunk in texts or ()]
        for blob_id, texts in found.items()
    }
