"""The vectors of code on this machine: stored in SQLite, searched in a mapped file.

All methods block, and any thread may call them. One runs at a time, except for `near`,
which waits for no other. Errors are ByokErrors, after which the store is unchanged.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from byok.core.errors import ConfigError
from byok.core.platform.paths import make_private
from byok.search.index.store.chunk_index import View
from byok.search.retrieval.model_aids import NearChunks
from byok.search.vectors.numeric import Quantised, cosine, normalise, quantise
from byok.search.vectors.store import database, listings
from byok.search.vectors.store.database import LEFT, Space, VectorDatabase, first_id
from byok.search.vectors.store.listings import FillProgress
from byok.search.vectors.store.open_space import (
    OpenSpace,
    ids_of_keys,
    remove_files,
)
from byok.search.vectors.types import Key, SpaceName
from byok.storage.database import today

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors

_log = logging.getLogger(__name__)
NEAREST = 100  # chunks that `near` returns
READY_SHARE = 0.95  # of all vectors, with which a space answers instead of an older one
# Days that a vector is kept after its last chunk is gone: branches are switched, and
# changes are reverted.
_UNUSED_DAYS = 14
_REFUSED_DAYS = 30  # after which a refused text is tried again
_STEP_ROWS = 2000  # rows that a step of `tidy` removes
_STEP_PAGES = 2000  # that a step returns to the disk
P = ParamSpec("P")
T = TypeVar("T")


class VectorStore:
    """Vectors by key, chunks by blob, and the search over them."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or create the files; `index` is the database of the open code index.

        Rows files are in a folder beside `path` with its stem as name. A damaged
        database is set aside, and everything is made anew. `on_damage` is called, by
        any thread, when it turns out to be damaged later; then open the files again.

        Raises:
            CannotStart: a later version of byok wrote them.
            ConfigError: other programs' files have these names.
            DiskFull, NotReady, IndexFailed: they cannot be used at the moment.
        """
        self.path = path
        self._folder = path.with_suffix("")
        if self._folder.is_symlink():
            raise ConfigError(f"{self._folder} is a link.", hint="Move it away.")
        self._open: dict[int, OpenSpace] = {}
        self._spaces: tuple[Space, ...] = ()
        self._database = VectorDatabase(path, index, on_damage)
        try:
            with self._database.writing() as db:
                make_private(self._folder)
                listings.delete_stale(db)
                listings.delete_empty(db)
            self._close_spaces(())
        except BaseException:
            self._database.close(clean=False)
            raise

    def close(self) -> None:
        """Close the files; blocks until the running call is done."""
        with self._database.reading():
            for opened in self._open.values():
                opened.close()
            self._open.clear()
        self._database.close()

    # Questions

    def near(
        self,
        space: Space,
        question: "Vectors",
        view: View,
        requested: Collection[int] = (),
        limit: int = NEAREST,
    ) -> NearChunks:
        """Return the nearest chunks of a view, and the best one of each requested blob.

        `question` is one vector of the space's model, of any length; one without a
        direction, or of other dimensions, finds nothing. It is compared with every
        vector of the view. The first call may have to open the space.

        Raises:
            DiskFull, NotReady, IndexFailed: the space cannot be opened.
        """
        row = normalise(question)
        if row is None or len(row) != space.name.dimensions:
            return NearChunks([], {})
        opened = self._open.get(space.id)
        if opened is None or opened.is_short:
            opened = self.open_space(space)
        return opened.matrix.near(row, view, requested, limit)

    def space_for(self, space: Space) -> Space | None:
        """Return the space to search with questions of a space's model.

        That is the newest one that is ready: an older one with another recipe answers
        until the new one is nearly full. If none is ready, it is the newest one; None
        without any. Waits for no other call.
        """
        answering = [
            candidate for candidate in self._spaces if candidate.answers(space)
        ]
        return next(
            (s for s in answering if s.is_ready), answering[0] if answering else None
        )

    # Spaces

    def spaces(self) -> list[Space]:
        """Return the spaces, the newest first."""
        return list(self._spaces)

    def enter(self, name: SpaceName, probe: "Vectors") -> Space:
        """Return the space of a model, and create it if there is none.

        If the vector of the probe text changed, the space is a new one, and vectors of
        the old one that no good probe confirmed are deleted.
        """
        existing = None
        with self._database.writing() as db:
            for space in database.all_spaces(db):
                if space.name != name:
                    continue
                is_same = cosine(space.probe, probe) >= database.SAME_COSINE
                if is_same and existing is None:
                    existing = space
                else:
                    self._drop_unchecked(db, space)
            if existing is not None:
                sql = "UPDATE space SET checked = turn WHERE id = ?"
                db.execute(sql, (existing.id,))
                return existing
            created = database.make_space(db, name, probe)
        self._read_spaces()
        return created

    def _read_spaces(self) -> None:
        with self._database.reading() as db:
            self._spaces = tuple(database.all_spaces(db))

    def _drop_unchecked(self, db: sqlite3.Connection, space: Space) -> None:
        """Delete the vectors made since the last good probe, inside a transaction.

        Some of them may be of another model.
        """
        dropped = db.execute(
            "DELETE FROM vector WHERE id >= ? AND id < ? "
            "AND turn > (SELECT checked FROM space WHERE id = ?)",
            (first_id(space.id), first_id(space.id + 1), space.id),
        ).rowcount
        if dropped:
            _log.warning("the model was replaced: %d vectors are dropped", dropped)
            if opened := self._open.pop(space.id, None):
                opened.close()

    def open_space(self, space: Space) -> OpenSpace:
        """Open a space for searches and new vectors; reads its whole file once."""
        with self._database.reading() as db:
            opened = self._open.get(space.id)
            if opened is not None and opened.is_short:
                opened.close()
                opened = None
            if opened is None:
                opened = self._open[space.id] = OpenSpace(db, self._folder, space)
            return opened

    def settle(self, space: Space, progress: FillProgress) -> bool:
        """If a space is nearly full, mark it as ready, and the others for removal.

        Return whether it is ready.
        """
        others = [other for other in self._spaces if other.id != space.id]
        if progress.share < READY_SHARE or (space.is_ready and not others):
            return space.is_ready
        with self._database.writing() as db:
            sql = "UPDATE space SET state = ? WHERE id = ?"
            db.execute(sql, (database.READY, space.id))
            database.schedule_removal(db, others)
        self._close_spaces(others)
        return True

    def clear(self) -> None:
        """Mark all spaces for removal; `tidy` deletes their vectors in small steps."""
        spaces = self._spaces
        with self._database.writing() as db:
            database.schedule_removal(db, spaces)
        self._close_spaces(spaces)

    def _close_spaces(self, spaces: Iterable[Space]) -> None:
        with self._database.reading():
            for space in spaces:
                if opened := self._open.pop(space.id, None):
                    opened.close()
            self._read_spaces()
            remove_files(self._folder, [space.id for space in self._spaces])

    # Filling

    def refresh_listing(self, recipe: str, is_embedded: Callable[[str], bool]) -> int:
        """Compare the listings with the blobs of the index.

        Return how many new blobs have chunks that need vectors.
        """
        with self._database.writing() as db:
            stale = listings.delete_stale(db)
            new = listings.list_new(db, recipe, is_embedded)
        with self._database.reading():
            for opened in self._open.values():
                opened.forget(stale)
        return new

    def read(
        self,
        query: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return the result of a query, such as those of `listings.py`."""
        with self._database.reading() as db:
            return query(db, *args, **kwargs)

    def list_chunks(
        self, space: Space, blobs: Mapping[int, Sequence[tuple[int, Key]]]
    ) -> set[Key]:
        """Store the keys of blobs' chunks by ordinal; return those without a vector."""
        recipe = space.name.recipe
        with self._database.reading():  # no other thread may add vectors meanwhile
            with self._database.writing() as db:
                changed = listings.list_chunks(db, recipe, blobs)
                all_keys = [key for keys in blobs.values() for _, key in keys]
                missing = set(listings.absent_keys(db, space.id, all_keys))
            for opened in self._open.values():
                if opened.space.name.recipe == recipe:
                    opened.forget(changed)
                    opened.publish_blobs(changed)
        return missing

    def put(self, space: Space, keys: Sequence[Key], vectors: "Vectors") -> list[Key]:
        """Store a vector (a row) for each key in one transaction, and publish them.

        Keys must be listed. A vector without a direction (not finite, zero) counts as
        refused by the model. Return the refused keys.

        Raises:
            DiskFull, NotReady, IndexFailed: nothing was stored.
        """
        rows = quantise(vectors)
        with self._database.reading():  # places count as free until they are published
            opened = self.open_space(space)
            with self._database.writing() as db:
                absent = listings.absent_keys(db, space.id, keys)
                ids = ids_of_keys(db, absent)
                row_of = {key: row for row, key in enumerate(keys)}
                good = {key: i for key, i in ids.items() if rows.usable[row_of[key]]}
                refused = [key for key in ids if key not in good]
                db.executemany(
                    "INSERT OR REPLACE INTO refused VALUES(?, ?, ?)",
                    [(space.id, ids[key], today()) for key in refused],
                )
                order = [row_of[key] for key in good]
                good_rows = Quantised(
                    rows.numbers[order], rows.scales[order], rows.usable[order]
                )
                stored = opened.store(list(good.values()), good_rows) if good else None
            if stored:
                try:
                    opened.publish(stored)
                except BaseException:  # the next opening copies them from the database
                    self._open.pop(space.id, None)
                    opened.close()
                    raise
        return refused

    # Status

    def progress(self, space: Space) -> FillProgress:
        """Return the progress of a space; counts rows, which takes milliseconds."""
        with self._database.reading() as db:
            chunks, refused = listings.count(db, space.name.recipe, space.id)
            embedded = self.open_space(space).matrix.chunks
        return FillProgress(chunks, embedded, refused)

    @property
    def bytes(self) -> int:
        """The bytes on disk of all files."""
        size = 0
        for file in [
            *self.path.parent.glob(f"{self.path.name}*"),
            *self._folder.glob("*"),
        ]:
            with suppress(OSError):  # the file may be removed meanwhile
                size += file.lstat().st_size
        return size

    # Housekeeping

    def tidy(self, day: int) -> bool:
        """Do one step of `tidy` and of `shrink_file`; return whether more is to do."""
        with self._database.writing() as db:
            has_more = tidy(db, day)
        with self._database.reading() as db:
            return shrink_file(db) or has_more


def tidy(db: sqlite3.Connection, day: int) -> bool:
    """Remove some unneeded rows, inside a transaction; return whether more is to do.

    `day` is counted since 1970.
    """
    if db.execute("SELECT value FROM meta WHERE key = 'noted'").fetchone() != (day,):
        _record_unused(db, day)
        db.execute("INSERT OR REPLACE INTO meta VALUES('noted', ?)", (day,))
        return True
    removed = _remove_left_space(db)
    if not removed:
        removed = _remove_unused(db, day)
    db.execute("DELETE FROM refused WHERE day < ?", (day - _REFUSED_DAYS,))
    return removed


def shrink_file(db: sqlite3.Connection) -> bool:
    """Return some free pages to the disk, outside a transaction.

    Return whether more is to do.
    """
    count = _count_free_pages(db)
    # `execute` would stop after the first page, as the pragma has a row for each.
    db.executescript(f"PRAGMA main.incremental_vacuum({_STEP_PAGES})")
    return 0 < _count_free_pages(db) < count


def _count_free_pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA main.freelist_count").fetchone()[0])


def _record_unused(db: sqlite3.Connection, day: int) -> None:
    """Record that keys without a chunk are unused since this day, in a transaction.

    Compares all keys: a third of a second for 300,000.
    """
    db.execute(
        "UPDATE key SET unused = NULL WHERE unused IS NOT NULL "
        "AND EXISTS(SELECT 1 FROM chunk c WHERE c.key_id = key.id)"
    )
    db.execute(
        "UPDATE key SET unused = ? WHERE unused IS NULL "
        "AND NOT EXISTS(SELECT 1 FROM chunk c WHERE c.key_id = key.id)",
        (day,),
    )


def _remove_left_space(db: sqlite3.Connection) -> bool:
    row = db.execute("SELECT id FROM space WHERE state = ?", (LEFT,)).fetchone()
    if row is not None:
        (space_id,) = row
        removed = db.execute(
            "DELETE FROM vector WHERE id IN "
            "(SELECT id FROM vector WHERE id >= ? AND id < ? LIMIT ?)",
            (first_id(space_id), first_id(space_id + 1), _STEP_ROWS),
        ).rowcount
        if removed == _STEP_ROWS:
            return True
        for table in ("refused", "block"):
            db.execute(f"DELETE FROM {table} WHERE space_id = ?", (space_id,))  # noqa: S608
        db.execute("DELETE FROM space WHERE id = ?", (space_id,))
        return True
    return _remove_old_recipes(db)


def _remove_old_recipes(db: sqlite3.Connection) -> bool:
    """Remove listings of recipes that no space has."""
    row = db.execute(
        "SELECT recipe, blob_id FROM listing WHERE recipe NOT IN "
        "(SELECT recipe FROM space) LIMIT 1"
    ).fetchone()
    if row is None or not db.execute("SELECT 1 FROM space").fetchone():
        return False
    db.execute(
        "DELETE FROM chunk WHERE (recipe, blob_id, ordinal) IN "
        "(SELECT recipe, blob_id, ordinal FROM chunk WHERE recipe = ? LIMIT ?)",
        (row[0], _STEP_ROWS),
    )
    if not db.execute("SELECT 1 FROM chunk WHERE recipe = ?", (row[0],)).fetchone():
        db.execute("DELETE FROM listing WHERE recipe = ?", (row[0],))
    return True


def _remove_unused(db: sqlite3.Connection, day: int) -> bool:
    """Remove keys that have had no chunk for long, and their vectors."""
    ids = db.execute(
        "SELECT id FROM key WHERE unused < ? AND NOT EXISTS"
        "(SELECT 1 FROM chunk c WHERE c.key_id = key.id) LIMIT ?",
        (day - _UNUSED_DAYS, _STEP_ROWS),
    ).fetchall()
    db.executemany(
        "DELETE FROM vector WHERE key_id = ? AND space_id IN (SELECT id FROM space)",
        ids,
    )
    db.executemany("DELETE FROM refused WHERE key_id = ?", ids)
    db.executemany("DELETE FROM key WHERE id = ?", ids)
    return len(ids) == _STEP_ROWS
