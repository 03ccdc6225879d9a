"""The file of a space that is scanned: a copy of its vectors, mapped into memory.

Vectors are read from here and not from SQLite, because a scan reads all of them. The
file is never the truth: whatever is wrong with it is written again from the database,
block by block, as checksums there tell. So it is never flushed to the disk.

Layout: a header of 4,096 bytes, then blocks. A block has 2,048 rows of int8 numbers,
then 2,048 float32 scales. A space says how many of the rows are in use.
"""

import mmap
import os
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from byok.search.vectors.numeric import np
from byok.search.vectors.store.database import check_plain
from byok.storage.damage import set_aside

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
