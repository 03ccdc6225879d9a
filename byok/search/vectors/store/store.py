"""The vectors of code on this machine: SQLite holds them, a mapped file is searched.

All methods block and may be called by any thread; one of them works at a time, but
`near` waits for none. Errors are ByokErrors; after one the store is as it was before.
"""

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from byok.core.errors import ConfigError
from byok.core.platform.paths import make_private
from byok.search.index.contents import Entry
from byok.search.index.store.chunk_index import View
from byok.search.retrieval.model_aids import NearChunks
from byok.search.vectors.numeric import normalise, quantise, take
from byok.search.vectors.store import database, listings
from byok.search.vectors.store.database import LEFT, Space, VectorDatabase, first_id
from byok.search.vectors.store.listings import FillProgress, ListedKey
from byok.search.vectors.store.open_space import (
    OpenSpace,
    StoredVectors,
    ids_of_keys,
    remove_files,
    size_of,
    vectors_of,
)
from byok.search.vectors.types import Key, SpaceName

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors


# Removal of what is no longer needed, in small steps.
#
# A vector is kept for two weeks after its last chunk is gone: branches are switched,
# and changes taken back. A text that a model refused is tried again after a month.


_KEPT_DAYS = 14
_REFUSED_DAYS = 30
_AT_ONCE = 2000
_PAGES = 2000  # given back to the disk in a step


def tidy(db: sqlite3.Connection, day: int) -> bool:
    """Do one step in one transaction; tell whether there is more to do.

    `day` is counted since 1970.
    """
    if db.execute("SELECT value FROM meta WHERE key = 'noted'").fetchone() != (day,):
        _note_unused(db, day)
        db.execute("INSERT OR REPLACE INTO meta VALUES('noted', ?)", (day,))
        return True
    removed = _remove_left(db)
    if not removed:
        removed = _remove_unused(db, day)
    db.execute("DELETE FROM refused WHERE day < ?", (day - _REFUSED_DAYS,))
    return removed


def give_back(db: sqlite3.Connection) -> bool:
    """Shorten the file by pages that are free; tell whether there are more.

    Outside a transaction only.
    """
    before = _free_pages(db)
    # `execute` would stop after the first page: the pragma is a row for each.
    db.executescript(f"PRAGMA main.incremental_vacuum({_PAGES})")
    return 0 < _free_pages(db) < before


def _free_pages(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA main.freelist_count").fetchone()[0])


def _note_unused(db: sqlite3.Connection, day: int) -> None:
    """Note which keys belong to no chunk since this day, inside a transaction.

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


def _remove_left(db: sqlite3.Connection) -> bool:
    left = db.execute("SELECT id FROM space WHERE state = ?", (LEFT,)).fetchone()
    if left is not None:
        (space_id,) = left
        removed = db.execute(
            "DELETE FROM vector WHERE id IN "
            "(SELECT id FROM vector WHERE id >= ? AND id < ? LIMIT ?)",
            (first_id(space_id), first_id(space_id + 1), _AT_ONCE),
        ).rowcount
        if removed == _AT_ONCE:
            return True
        for table in ("refused", "block"):
            db.execute(f"DELETE FROM {table} WHERE space_id = ?", (space_id,))  # noqa: S608
        db.execute("DELETE FROM space WHERE id = ?", (space_id,))
        return True
    return _remove_old_recipes(db)


def _remove_old_recipes(db: sqlite3.Connection) -> bool:
    """Remove listings of recipes that no space has any more."""
    row = db.execute(
        "SELECT recipe, blob_id FROM listing WHERE recipe NOT IN "
        "(SELECT recipe FROM space) LIMIT 1"
    ).fetchone()
    if row is None or not db.execute("SELECT 1 FROM space").fetchone():
        return False
    db.execute(
        "DELETE FROM chunk WHERE (recipe, blob_id, ordinal) IN "
        "(SELECT recipe, blob_id, ordinal FROM chunk WHERE recipe = ? LIMIT ?)",
        (row[0], _AT_ONCE),
    )
    if not db.execute("SELECT 1 FROM chunk WHERE recipe = ?", (row[0],)).fetchone():
        db.execute("DELETE FROM listing WHERE recipe = ?", (row[0],))
    return True


def _remove_unused(db: sqlite3.Connection, day: int) -> bool:
    """Remove keys that had no chunk for long, and their vectors."""
    ids = db.execute(
        "SELECT id FROM key WHERE unused < ? AND NOT EXISTS"
        "(SELECT 1 FROM chunk c WHERE c.key_id = key.id) LIMIT ?",
        (day - _KEPT_DAYS, _AT_ONCE),
    ).fetchall()
    db.executemany(
        "DELETE FROM vector WHERE key_id = ? AND space_id IN (SELECT id FROM space)",
        ids,
    )
    db.executemany("DELETE FROM refused WHERE key_id = ?", ids)
    db.executemany("DELETE FROM key WHERE id = ?", ids)
    return len(ids) == _AT_ONCE


_log = logging.getLogger(__name__)
NEAREST = 100
"""Chunks that `near` returns."""

READY_SHARE = 0.95
"""With this share of all vectors a space answers instead of an older one."""


class VectorStore:
    """Vectors by key, chunks by blob, and the search over them."""

    def __init__(
        self, path: Path, index: Path, on_damage: Callable[[], object] = lambda: None
    ) -> None:
        """Open or make the files; `index` is the database of the open code index.

        Files of rows are in a folder beside `path` with its stem as name. A damaged
        database is set aside, and everything is made anew. `on_damage` is called, by
        any thread, when it turns out to be damaged later; then open the files again.

        Raises:
            CannotStart: a later version of byok wrote them.
            ConfigError: there are files of somebody else.
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
                listings.forget_gone(db)
                listings.forget_empty(db)
            self._forget(())
        except BaseException:
            self._database.close(clean=False)
            raise

    def close(self) -> None:
        """Close the files; blocks until the work at hand is done."""
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
        asked: Collection[int] = (),
        limit: int = NEAREST,
    ) -> NearChunks:
        """Return the nearest chunks of a view, and the best one of each asked blob.

        `question` is one vector of the space's model, of any length; one that is no
        direction, or of another model, finds nothing. It is compared with every vector
        of the view. The first call may have to open the space.

        Raises:
            DiskFull, NotReady, IndexFailed: the space cannot be opened.
        """
        row = normalise(question)
        if row is None or len(row) != space.name.dimensions:
            return NearChunks([], {})
        opened = self._open.get(space.id)
        if opened is None or opened.is_short:
            opened = self.open_space(space)
        return opened.matrix.near(row, view, asked, limit)

    def space_for(self, space: Space) -> Space | None:
        """Return the space to be searched with questions of a space's model.

        That is the newest which is ready, else `space`: an older one with another
        recipe answers until the new one is nearly full. None if it is gone. Waits for
        nothing.
        """
        known = [one for one in self._spaces if one.answers(space)]
        return next((s for s in known if s.is_ready), known[0] if known else None)

    # Spaces

    def spaces(self) -> list[Space]:
        """Return the spaces, the newest first."""
        return list(self._spaces)

    def enter(self, name: SpaceName, probe: "Vectors") -> Space:
        """Return the space of a model, and make it if there is none.

        A model whose vector for the probe text changed has a new one; then vectors of
        the old one that no good probe confirmed since are deleted.
        """
        with self._database.writing() as db:
            found = database.find_space(db, name, probe)
            for other in database.all_spaces(db):
                if other.name == name and other != found:
                    self._drop_unchecked(db, other)
            if found is not None:
                database.note_good_probe(db, found)
                return found
            made = database.make_space(db, name, probe)
        self._read_spaces()
        return made

    def _read_spaces(self) -> None:
        with self._database.reading() as db:
            self._spaces = tuple(database.all_spaces(db))

    def _drop_unchecked(self, db: sqlite3.Connection, space: Space) -> None:
        dropped = database.drop_unchecked(db, space)
        if dropped:
            _log.warning("the model was replaced: %d vectors are dropped", dropped)
            if opened := self._open.pop(space.id, None):
                opened.close()

    def open_space(self, space: Space) -> OpenSpace:
        """Have a space ready for searches and vectors; reads its whole file once."""
        with self._database.reading() as db:
            opened = self._open.get(space.id)
            if opened is not None and opened.is_short:
                opened.close()
                opened = None
            if opened is None:
                opened = self._open[space.id] = OpenSpace(db, self._folder, space)
            return opened

    def settle(self, space: Space, progress: FillProgress) -> bool:
        """Let a space answer alone if it is nearly full; the others are removed then.

        Returns whether it is ready.
        """
        others = [other for other in self._spaces if other.id != space.id]
        if progress.share < READY_SHARE or (space.is_ready and not others):
            return space.is_ready
        with self._database.writing() as db:
            sql = "UPDATE space SET state = ? WHERE id = ?"
            db.execute(sql, (database.READY, space.id))
            database.leave(db, others)
        self._forget(others)
        return True

    def clear(self) -> None:
        """Have all vectors of all spaces removed; `tidy` does it step by step."""
        every = self._spaces
        with self._database.writing() as db:
            database.leave(db, every)
        self._forget(every)

    def _forget(self, some: Iterable[Space]) -> None:
        with self._database.reading():
            for space in some:
                if opened := self._open.pop(space.id, None):
                    opened.close()
            self._read_spaces()
            remove_files(self._folder, [space.id for space in self._spaces])

    # What is to be embedded

    def look(self, recipe: str, is_embedded: Callable[[str], bool]) -> int:
        """Compare the listing with the blobs of the index; return how many wait."""
        with self._database.writing() as db:
            gone = listings.forget_gone(db)
            waiting = listings.list_new(db, recipe, is_embedded)
        with self._database.reading():
            for opened in self._open.values():
                opened.forget(gone)
        return waiting

    def index_version(self) -> int:
        """Return a number that changes whenever the index may have changed."""
        with self._database.reading() as db:
            return int(db.execute("PRAGMA data.data_version").fetchone()[0])

    def plan(
        self, recipe: str, asked: Collection[int] = (), limit: int = 1024
    ) -> list[Entry]:
        """Return blobs whose chunks are not listed yet: asked ones first, then new."""
        with self._database.reading() as db:
            return listings.plan(db, recipe, asked, limit)

    def plan_missing(
        self, space: Space, asked: Collection[int] = (), limit: int = 1024
    ) -> list[Entry]:
        """Return listed blobs that lack a vector in a space, in the same order."""
        recipe = space.name.recipe
        with self._database.reading() as db:
            return listings.plan_missing(db, recipe, space.id, asked, limit)

    def list_chunks(
        self, space: Space, blobs: Mapping[int, Sequence[tuple[int, Key]]]
    ) -> set[Key]:
        """Note the keys of blobs' chunks, by ordinal; return those without a vector."""
        recipe = space.name.recipe
        with self._database.reading():  # no other thread's vectors come in between
            with self._database.writing() as db:
                fresh = listings.list_chunks(db, recipe, blobs)
                every = [key for keys in blobs.values() for _, key in keys]
                absent = set(listings.absent_keys(db, space.id, every))
            for opened in self._open.values():
                if opened.space.name.recipe == recipe:
                    opened.forget(fresh)
                    opened.show_blobs(fresh)
        return absent

    def put(self, space: Space, keys: Sequence[Key], vectors: "Vectors") -> list[Key]:
        """Store a vector, a row, for each key, in one transaction; they are found then.

        Keys must be listed. A vector that is no direction (not finite, zero) counts as
        refused by the model. Returns the refused keys.

        Raises:
            DiskFull, NotReady, IndexFailed: nothing was stored.
        """
        rows = quantise(vectors)
        with self._database.reading():  # places are free until they are shown
            opened = self.open_space(space)
            with self._database.writing() as db:
                ids = ids_of_keys(db, listings.absent_keys(db, space.id, keys))
                at = {key: place for place, key in enumerate(keys)}
                good = {key: i for key, i in ids.items() if rows.usable[at[key]]}
                bad = [key for key in ids if key not in good]
                database.refuse(db, space, [ids[key] for key in bad])
                some = take(rows, [at[key] for key in good])
                stored = opened.store(list(good.values()), some) if good else None
            if stored:
                self._show(opened, stored)
        return bad

    def _show(self, opened: OpenSpace, stored: StoredVectors) -> None:
        try:
            opened.show(stored)
        except BaseException:  # the database has them: the file is compared again
            self._open.pop(opened.space.id, None)
            opened.close()
            raise

    def vectors_of(self, space: Space, keys: Iterable[Key]) -> dict[Key, "Vectors"]:
        """Return the vectors of those keys that have one, each (dimensions,)."""
        with self._database.reading() as db:
            return vectors_of(db, space.id, space.name.dimensions, keys)

    # What a team may have

    def roots(self) -> dict[int, Path]:
        """Return the folders of the workspaces by their ids."""
        with self._database.reading() as db:
            return {
                number: Path(root)
                for number, root in db.execute("SELECT id, root FROM data.workspace")
            }

    def keys_with_vector(self, space: Space, after: int, limit: int) -> list[ListedKey]:
        """Return keys that have a vector in a space, those after a number."""
        with self._database.reading() as db:
            return listings.keys_with_vector(db, space, after, limit)

    def keys_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[ListedKey]:
        """Return keys of chunks that have none in a space, those after a number."""
        with self._database.reading() as db:
            return listings.keys_without_vector(db, space, after, limit)

    def keys_of_blobs(
        self, space: Space, blob_ids: Iterable[int]
    ) -> dict[int, list[tuple[int, Key]]]:
        """Return the ordinals and keys of the chunks of those blobs that are listed."""
        with self._database.reading() as db:
            return listings.keys_of(db, space.name.recipe, blob_ids)

    # Telling

    def progress(self, space: Space) -> FillProgress:
        """Return how far a space is filled; counts rows, for milliseconds."""
        with self._database.reading() as db:
            chunks, refused = listings.count(db, space.name.recipe, space.id)
            embedded = self.open_space(space).matrix.chunks
        return FillProgress(chunks, embedded, refused)

    @property
    def bytes(self) -> int:
        """How much of the disk all of it takes."""
        return size_of(self.path, self._folder)

    # Housekeeping

    def tidy(self, day: int) -> bool:
        """Remove a part of what is not needed; tell whether there is more to do.

        `day` is counted since 1970. Vectors stay for two weeks without a chunk.
        """
        with self._database.writing() as db:
            is_more = tidy(db, day)
        with self._database.reading() as db:
            return give_back(db) or is_more
