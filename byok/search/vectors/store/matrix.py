"""Finds the chunks of a view that are nearest to a question, by comparing all.

No approximate index: 300,000 vectors are compared in a tenth of a second of one core,
which is exact, needs no building and no more memory than the mapped file.

Chunks are three columns: blob, ordinal, and the place of the vector in the rows file;
several chunks may share a place. The columns only grow, and readers take a snapshot of
them, so a search sees vectors of finished batches and nothing else.
"""

import mmap
import os
import struct
import threading
import zlib
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from byok.core.bounded import BoundedMap
from byok.search.index.store.chunk_index import ChunkScore, View
from byok.search.retrieval.model_aids import NearChunks
from byok.search.vectors.numeric import np
from byok.search.vectors.store.database import check_plain
from byok.storage.damage import set_aside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from byok.search.vectors.types import Vectors


# The file of a space that is scanned: a copy of its vectors, mapped into memory.
#
# Vectors are read from here and not from SQLite, because a scan reads all of them. The
# file is never the truth: whatever is wrong with it is written again from the database,
# block by block, as checksums there tell. So it is never flushed to the disk.
#
# Layout: a header of 4,096 bytes, then blocks. A block has 2,048 rows of int8 numbers,
# then 2,048 float32 scales. A space says how many of the rows are in use.


BLOCK = 2048
"""Rows of a block."""

_MAGIC = b"byok rows\n"
_VERSION = 1
_HEADER = struct.Struct("<10sHIQ")  # magic, version, dimensions, space
_HEADER_BYTES = 4096
_SCALE = 4
_GROWTH = 8  # at least a block, else an eighth of what is there


class Block(NamedTuple):
    """The rows of a block, mapped: int8 (2048, dimensions) and float32 (2048,)."""

    numbers: "NDArray[np.int8]"
    scales: "NDArray[np.float32]"


class RowsFile:
    """The rows of one space; written by one thread at a time, read by any meanwhile."""

    def __init__(self, path: Path, space_id: int, dimensions: int) -> None:
        """Open or make the file; one that is not of this space is begun anew.

        A file without byok's mark is set aside.

        Raises:
            ConfigError: it is a link, or no file.
            OSError: it cannot be opened or written.
        """
        self.path = path
        self.dimensions = dimensions
        self._block_bytes = BLOCK * (dimensions + _SCALE)
        check_plain(path)
        if path.exists() and not is_own(path):
            set_aside(path, "byok did not write it", endings=("",))
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        flags |= getattr(os, "O_BINARY", 0)
        handle = os.open(path, flags, 0o600)
        self._file = open(handle, "r+b", buffering=0)  # noqa: SIM115, PTH123
        self._blocks: tuple[Block, ...] = ()
        header = _HEADER.pack(_MAGIC, _VERSION, dimensions, space_id)
        try:
            if self._file.read(_HEADER.size) != header:
                self._file.truncate(0)
                self._put(0, header)
            size = os.fstat(self._file.fileno()).st_size
            self._map(max(0, size - _HEADER_BYTES) // self._block_bytes)
        except BaseException:
            self._file.close()
            raise

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks that there is room for; later ones may appear, none goes."""
        return self._blocks

    @property
    def size(self) -> int:
        """How many bytes the file has, room included."""
        return _HEADER_BYTES + len(self._blocks) * self._block_bytes

    @property
    def is_short(self) -> bool:
        """Whether somebody cut the file: to read what is mapped would end byok.

        True after `close`, which another thread may call at any moment.
        """
        try:
            return os.fstat(self._file.fileno()).st_size < self.size
        except (ValueError, OSError):
            return True

    def crc_of(self, number: int) -> int:
        """Return the checksum of a block as it is in the file."""
        numbers, scales = self._blocks[number]
        return zlib.crc32(scales.data, zlib.crc32(numbers.data))

    def make_room(self, rows: int) -> None:
        """Let there be blocks for so many rows; they have zeros."""
        needed = -(-rows // BLOCK)
        if needed > len(self._blocks) or self.is_short:
            room = max(needed, len(self._blocks) + len(self._blocks) // _GROWTH)
            self._file.truncate(_HEADER_BYTES + room * self._block_bytes)
            self._map(room)

    def write(
        self,
        places: "NDArray[np.int64]",
        numbers: "NDArray[np.int8]",
        scales: "NDArray[np.float32]",
    ) -> None:
        """Write rows to ascending places, for which there is room."""
        breaks = np.flatnonzero((np.diff(places) != 1) | (places[1:] % BLOCK == 0)) + 1
        edges = [0, *breaks.tolist(), len(places)]
        for first, last in pairwise(edges):
            if first < last:
                number, row = divmod(int(places[first]), BLOCK)
                start = _HEADER_BYTES + number * self._block_bytes
                at = start + row * self.dimensions
                self._put(at, numbers[first:last].tobytes())
                at = start + BLOCK * self.dimensions + row * _SCALE
                self._put(at, scales[first:last].tobytes())

    def close(self) -> None:
        """Close the file; what is mapped stays readable as long as somebody has it."""
        self._blocks = ()
        self._file.close()

    def _put(self, at: int, content: bytes) -> None:
        self._file.seek(at)
        rest = memoryview(content)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _map(self, count: int) -> None:
        if not count:
            self._blocks = ()
            return
        size = _HEADER_BYTES + count * self._block_bytes
        mapped = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        blocks = []
        for number in range(count):
            start = _HEADER_BYTES + number * self._block_bytes
            numbers = np.frombuffer(mapped, np.int8, BLOCK * self.dimensions, start)
            scales_at = start + BLOCK * self.dimensions
            scales = np.frombuffer(mapped, np.float32, BLOCK, scales_at)
            blocks.append(Block(numbers.reshape(BLOCK, self.dimensions), scales))
        self._blocks = tuple(blocks)


def is_own(path: Path) -> bool:
    """Tell whether a file bears the mark of byok's files of rows, or is empty."""
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) in (_MAGIC, b"")
    except OSError:
        return False


# The columns of chunks, and the comparison.


_VIEWS_KEPT = 8
_AT_ONCE = 512  # rows made floats at once: they fit into a core's cache
_NOBODY = -1  # no blob has this id
_MOST = 0.5  # of a block's rows: more are compared together, fewer are picked out


class Columns(NamedTuple):
    """Chunks that have a vector: blob id (int64), ordinal (int32), place (int32)."""

    blob: "NDArray[np.int64]"
    ordinal: "NDArray[np.int32]"
    place: "NDArray[np.int32]"


class _Selection(NamedTuple):
    """The chunks of a view: their rows in the columns, and the places they share.

    `places` ascend; `row_of` says for each chunk which of them is its own.
    """

    chunks: "NDArray[np.int64]"
    places: "NDArray[np.int64]"
    row_of: "NDArray[np.int32]"


class _Snapshot(NamedTuple):
    columns: Columns
    blocks: tuple[Block, ...]
    number: int


_ZEROS = Columns(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int32))
_NONE = Columns(_ZEROS.blob[:0], _ZEROS.ordinal[:0], _ZEROS.place[:0])


class Matrix:
    """The chunks and vectors of one space; filled by one thread, searched by any."""

    def __init__(self) -> None:
        self._buffers = _NONE
        self._now = _Snapshot(_NONE, (), 0)
        self._kept = BoundedMap[tuple[str, int], _Selection](_VIEWS_KEPT)
        self._using = threading.Lock()
        self._scratch = np.empty((0, 0), np.float32)
        self.gone = 0  # chunks that `forget` left without a blob

    @property
    def chunks(self) -> int:
        """How many chunks have a vector here."""
        return len(self._now.columns.blob) - self.gone

    def load(self, columns: Columns, blocks: tuple[Block, ...]) -> None:
        """Take these chunks instead of all before."""
        self._buffers = columns
        self.gone = 0
        self._now = _Snapshot(columns, blocks, self._now.number + 1)

    def add(self, columns: Columns, blocks: tuple[Block, ...]) -> None:
        """Add chunks whose vectors were written to the blocks."""
        before, added = len(self._now.columns.blob), len(columns.blob)
        if before + added > len(self._buffers.blob):
            room = max(BLOCK, (before + added) * 5 // 4)
            now = self._now.columns if before else _ZEROS
            self._buffers = Columns(
                np.resize(now.blob, room),
                np.resize(now.ordinal, room),
                np.resize(now.place, room),
            )
        blob, ordinal, place = self._buffers
        end = before + added
        blob[before:end] = columns.blob
        ordinal[before:end] = columns.ordinal
        place[before:end] = columns.place
        filled = Columns(blob[:end], ordinal[:end], place[:end])
        self._now = _Snapshot(filled, blocks, self._now.number + 1)

    def forget(self, blob_ids: Collection[int]) -> None:
        """Have chunks of these blobs found no more, also where their id comes back."""
        ids = np.fromiter(blob_ids, np.int64, len(blob_ids))
        end = len(self._now.columns.blob)
        blob = self._buffers.blob
        hit = np.isin(blob[:end], ids)
        if not hit.any():
            return
        self.gone += int(np.count_nonzero(hit))
        blob = blob.copy()  # searches may be reading the old one
        blob[:end][hit] = _NOBODY
        self._buffers = self._buffers._replace(blob=blob)
        columns = self._now.columns._replace(blob=blob[:end])
        self._now = _Snapshot(columns, self._now.blocks, self._now.number + 1)

    def near(
        self, question: "Vectors", view: View, asked: Collection[int], limit: int
    ) -> NearChunks:
        """Return the `limit` nearest chunks of a view, and the best of asked blobs.

        `question` is one vector of length 1. Blocks: 6 ms of CPU for 20,000 vectors of
        768 numbers.
        """
        now = self._now
        chosen = self._select(now, view)
        if not len(chosen.chunks):
            return NearChunks([], {})
        with self._using:
            cosines = self._compare(now.blocks, chosen.places, question.ravel())
        scores = cosines[chosen.row_of]
        count = min(limit, len(scores))
        best = np.argpartition(-scores, count - 1)[:count]
        nearest = list(_hits(now.columns, chosen.chunks[best], scores[best]))
        nearest.sort(key=lambda hit: (-hit.score, hit.blob_id, hit.ordinal))
        return NearChunks(nearest, _best_of(now.columns, chosen, scores, asked))

    def _select(self, now: _Snapshot, view: View) -> _Selection:
        """Choose the chunks of a view; the last ones are kept by the view's key."""
        with self._using:
            found = self._kept.get((view.key, now.number))
        if found is None:
            ids = np.fromiter(view.ids, np.int64, len(view.ids))
            chunks = np.flatnonzero(np.isin(now.columns.blob, ids))
            places = now.columns.place[chunks]
            used = np.zeros(len(now.blocks) * BLOCK, np.bool_)
            used[places] = True
            ranks = np.cumsum(used, dtype=np.int32) - np.int32(1)
            found = _Selection(chunks, np.flatnonzero(used), ranks[places])
        with self._using:
            if any(number != now.number for _, number in self._kept):
                self._kept.clear()  # of chunks that were there before
            self._kept[view.key, now.number] = found
        return found

    def _compare(
        self,
        blocks: tuple[Block, ...],
        places: "NDArray[np.int64]",
        question: "NDArray[np.float32]",
    ) -> "NDArray[np.float32]":
        """Return the cosines of the rows at these ascending places."""
        found = np.empty(len(places), np.float32)
        if self._scratch.shape != (_AT_ONCE, len(question)):
            self._scratch = np.empty((_AT_ONCE, len(question)), np.float32)
        edges = np.searchsorted(places, np.arange(len(blocks) + 1) * BLOCK)
        for block, first, last in zip(blocks, edges, edges[1:], strict=False):
            if first < last:
                number_of = places[first:last] % BLOCK
                some = found[first:last]
                if last - first > _MOST * BLOCK:
                    end = int(number_of[-1]) + 1
                    every = np.empty(end, np.float32)
                    self._multiply(block.numbers[:end], question, every)
                    every *= block.scales[:end]
                    np.take(every, number_of, out=some)
                else:
                    self._multiply(block.numbers[number_of], question, some)
                    some *= block.scales[number_of]
        return found

    def _multiply(
        self,
        numbers: "NDArray[np.int8]",
        question: "NDArray[np.float32]",
        out: "NDArray[np.float32]",
    ) -> None:
        for start in range(0, len(numbers), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            floats = self._scratch[: len(some)]
            np.copyto(floats, some)
            np.dot(floats, question, out=out[start : start + len(some)])


def _hits(
    columns: Columns, chunks: "NDArray[np.int64]", scores: "NDArray[np.float32]"
) -> Iterator[ChunkScore]:
    blobs, ordinals = columns.blob[chunks].tolist(), columns.ordinal[chunks].tolist()
    return map(ChunkScore, blobs, ordinals, scores.tolist())


def _best_of(
    columns: Columns,
    chosen: _Selection,
    scores: "NDArray[np.float32]",
    asked: Collection[int],
) -> dict[int, ChunkScore]:
    """Return the nearest chunk of each of these blobs that has one in the view."""
    if not asked:
        return {}
    wanted = np.fromiter(asked, np.int64, len(asked))
    rows = np.flatnonzero(np.isin(columns.blob[chosen.chunks], wanted))
    chunks, some = chosen.chunks[rows], scores[rows]
    keys = (columns.ordinal[chunks], -some, columns.blob[chunks])
    order = np.lexsort(keys)
    _, firsts = np.unique(columns.blob[chunks][order], return_index=True)
    best = order[firsts]
    return {hit.blob_id: hit for hit in _hits(columns, chunks[best], some[best])}
