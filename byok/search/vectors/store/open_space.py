"""One space in use: its rows file, kept in step with the database, and its matrix."""

import logging
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from byok.search.vectors.numeric import np
from byok.search.vectors.store import vector_rows
from byok.search.vectors.store.matrix import Matrix
from byok.search.vectors.store.quantise import Quantised, take
from byok.search.vectors.store.rows_file import BLOCK, RowsFile, is_own
from byok.search.vectors.store.spaces import Space
from byok.search.vectors.types import Key
from byok.storage.migration import transaction

_log = logging.getLogger(__name__)


class OpenSpace:
    """The vectors of a space, as they are searched; for one thread at a time.

    Only `matrix` may be used by other threads.
    """

    def __init__(self, db: sqlite3.Connection, folder: Path, space: Space) -> None:
        """Open the file of rows, and write anew what does not agree with the database.

        Blocks: reads the whole file once to compare checksums.

        Raises:
            sqlite3.Error, OSError: it cannot be read or written.
            ConfigError: something else bears the name of the file.
        """
        self.space = space
        self.matrix = Matrix()
        self._db = db
        self._file = RowsFile(
            path_of(folder, space.id), space.id, space.name.dimensions
        )
        self._whole: dict[int, int] = {}  # checksums still to be stored
        try:
            self._compare()
            self.load()
        except BaseException:
            self._file.close()
            raise

    @property
    def size(self) -> int:
        """How many bytes the file of rows takes."""
        return self._file.size

    @property
    def is_short(self) -> bool:
        """Whether somebody cut the file of rows; it must be opened anew then."""
        return self._file.is_short

    def close(self) -> None:
        """Close the file; searches that run now still end well."""
        self.matrix = Matrix()
        self._file.close()

    def load(self) -> None:
        """Read again which chunks have a vector."""
        used = vector_rows.places_of(self._db, self.space.id)
        self._end = int(used[-1]) + 1 if len(used) else 0
        free = np.setdiff1d(np.arange(self._end), used, assume_unique=True)
        self._free: list[int] = free[::-1].tolist()
        name = self.space.name
        columns = vector_rows.columns_of(self._db, self.space.id, name.recipe)
        self.matrix.load(columns, self._file.blocks)

    def store(self, vectors: Mapping[Key, int], rows: Quantised) -> None:
        """Store vectors in the database; `vectors` are keys and their ids, in order.

        Inside a transaction. `show` is called after it.
        """
        taken = min(len(self._free), len(vectors))
        new = range(self._end, self._end + len(vectors) - taken)
        places = [*self._free[len(self._free) - taken :], *new]
        order = sorted(range(len(places)), key=places.__getitem__)
        places.sort()
        key_ids = [list(vectors.values())[at] for at in order]
        rows = take(rows, order)
        self._store_checksums()
        vector_rows.insert(self._db, self.space.id, places, key_ids, rows)
        self._next = (places, rows, key_ids, taken)

    def show(self) -> None:
        """Write to the file what was stored, and let it be found."""
        places, rows, key_ids, taken = self._next
        del self._free[len(self._free) - taken :]
        self._end += len(places) - taken
        self._file.make_room(self._end)
        self._file.write(np.array(places, np.int64), rows.numbers, rows.scales)
        for number in {place // BLOCK for place in places}:
            self._whole.pop(number, None)
            if (number + 1) * BLOCK <= self._end:
                self._whole[number] = self._file.crc_of(number)
        recipe = self.space.name.recipe
        added = vector_rows.columns_of_keys(self._db, self.space.id, recipe, key_ids)
        self.matrix.add(added, self._file.blocks)

    def show_blobs(self, blob_ids: Iterable[int]) -> None:
        """Let chunks be found that were just listed and have vectors already."""
        added = vector_rows.columns_of_blobs(
            self._db, self.space.id, self.space.name.recipe, blob_ids
        )
        if len(added.blob):
            self.matrix.add(added, self._file.blocks)

    def forget(self, blob_ids: Collection[int]) -> None:
        """Let chunks of these blobs be found no more."""
        self.matrix.forget(blob_ids)
        if self.matrix.gone > max(BLOCK, self.matrix.chunks):
            self.load()

    def _store_checksums(self) -> None:
        rows = [(self.space.id, *pair) for pair in self._whole.items()]
        self._db.executemany("INSERT OR REPLACE INTO block VALUES(?, ?, ?)", rows)
        self._whole.clear()

    def _compare(self) -> None:
        """Write blocks again whose checksum is wrong or missing."""
        used = vector_rows.places_of(self._db, self.space.id)
        count = -(-(int(used[-1]) + 1) // BLOCK) if len(used) else 0
        known = dict(
            self._db.execute(
                "SELECT number, crc FROM block WHERE space_id = ?", (self.space.id,)
            )
        )
        self._file.make_room(count * BLOCK)
        wrong = [n for n in range(count) if known.get(n) != self._file.crc_of(n)]
        with transaction(self._db):
            for number in wrong:
                self._rewrite(number)
            self._store_checksums()
        if len(wrong) > 1:
            _log.info("%d of %d blocks of vectors were copied again", len(wrong), count)

    def _rewrite(self, number: int) -> None:
        length = self.space.name.dimensions
        rows = vector_rows.read_block(self._db, self.space.id, number, length)
        places = np.arange(number * BLOCK, (number + 1) * BLOCK)
        self._file.write(places, *rows)
        self._whole[number] = self._file.crc_of(number)


def remove_files(folder: Path, kept: Iterable[int]) -> None:
    """Remove files of rows of all spaces but these; foreign files stay."""
    names = {path_of(folder, space_id) for space_id in kept}
    for path in folder.glob("space-*.rows"):
        if path not in names and is_own(path):
            with suppress(OSError):  # Windows, where a search has it open
                path.unlink()


def size_of(database: Path, folder: Path) -> int:
    """Return how many bytes a database and the files of rows take."""
    size = 0
    for file in [*database.parent.glob(f"{database.name}*"), *folder.glob("*")]:
        with suppress(OSError):  # it may go meanwhile
            size += file.lstat().st_size
    return size


def path_of(folder: Path, space_id: int) -> Path:
    """Return the file of rows of a space."""
    return folder / f"space-{space_id}.rows"
