"""Uploads of clients, kept and queued for the index; checkpoints, sets of blobs."""

import asyncio
import contextlib
import logging
import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from byok.core.bounded import BoundedMap
from byok.core.code_query import Upload
from byok.core.errors import NotReady
from byok.core.threads import to_the_end
from byok.search.index.contents import Contents
from byok.search.index.files.secret_names import is_secret
from byok.search.index.indexer import Indexer
from byok.search.index.store import blobs, checkpoints
from byok.search.index.store.blobs import Known
from byok.search.index.store.checkpoints import count_bytes, evict
from byok.search.index.store.chunk_index import View
from byok.search.index.store.schema import NAMED, TO_INDEX
from byok.search.index.store.store import Store
from byok.search.index.types import MAX_BYTES, SkipReason, UploadTask, is_path
from byok.storage.database import select_in, today

_log = logging.getLogger(__name__)
_SETS_KEPT = 8
_FREE_BYTES = 512 * 2**20
# How long a question waits for the indexing of the last uploads: a client that hears
# "not yet" asks again only after three seconds.
_PATIENCE = 1.0


class Missing(NamedTuple):
    """Names that must be uploaded, and names that are held but not searchable yet."""

    unknown: list[bytes]
    nonindexed: list[bytes]


class BlobSet(NamedTuple):
    """The blobs that a client asks about; `pending` of them are not searchable yet."""

    view: View
    unknown: list[bytes]
    pending: int
    checkpoint_found: bool


class Uploads(Struct, eq=False):
    """The uploaded blobs, checkpoints and names, as clients see them."""

    store: Store
    indexer: Indexer
    contents: Contents
    store_bytes: int
    free_bytes: int = _FREE_BYTES
    patience: float = _PATIENCE
    _searchable: asyncio.Event = field(default_factory=asyncio.Event)
    _touched: tuple[int, set[int]] = (0, set())
    _sets: BoundedMap[str, frozenset[int]] = field(
        default_factory=lambda: BoundedMap[str, frozenset[int]](_SETS_KEPT)
    )

    def restart(self) -> None:
        """Queue the uploads that were not indexed when byok last stopped."""
        with self.store.reading() as db:
            waiting = [
                row[0]
                for row in db.execute(
                    "SELECT b.id FROM blob b JOIN content c ON c.blob_id = b.id "
                    "WHERE b.state = ?",
                    (TO_INDEX,),
                )
            ]
            self.indexer.put(_tasks(db, waiting))

    def searchable(self) -> None:
        """Wake the questions that wait for uploads to be indexed."""
        self._searchable.set()

    async def wait_until_indexed(self, seconds: float) -> None:
        """Wait until more queued files are searchable, or some seconds have passed."""
        self._searchable.clear()
        if not self.indexer.open_tasks:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._searchable.wait()

    async def find_missing(self, names: Sequence[bytes]) -> Missing:
        """Say which names must be uploaded, and which are not searchable yet."""
        until = time.monotonic() + self.patience
        while True:
            working = self.indexer.open_tasks
            missing = await asyncio.to_thread(self._missing, names)
            left = until - time.monotonic()
            if not (missing.nonindexed and working and left > 0):
                return missing
            await self.wait_until_indexed(left)

    def _missing(self, names: Sequence[bytes]) -> Missing:
        with self.store.reading() as db:
            found = blobs.find_known(db, names)
        self._touch(entry.id for entry in found.values())
        here = self._hold_files(found.values())
        unknown = [
            name
            for name in names
            if name not in found or not (found[name].is_held or found[name].id in here)
        ]
        absent = set(unknown)
        waiting = [
            name
            for name in names
            if name not in absent and found[name].state == TO_INDEX
        ]
        return Missing(unknown, waiting)

    def _hold_files(self, found: Iterable[Known]) -> frozenset[int]:
        """Hold what files of workspaces have; on a full disk nothing new."""
        wanted = [e.id for e in found if e.state != NAMED and not e.is_held]
        if not wanted or self._is_disk_full():
            return frozenset()
        try:
            return self.contents.hold(wanted)
        except (NotReady, sqlite3.OperationalError) as error:
            _log.warning("cannot store files of workspaces: %s", error)
            return frozenset()

    async def upload(self, uploads: Sequence[Upload]) -> list[bytes]:
        """Keep uploads durably, queue them for the index, and return their names.

        Raises:
            NotReady: 507, the disk or the store is full.
        """
        await asyncio.to_thread(self._check_room)
        refused: dict[int, SkipReason] = {}
        for place, upload in enumerate(uploads):
            if not is_path(upload.path):
                refused[place] = SkipReason.NOT_A_FILE
            elif is_secret(upload.path, self.contents.allow_secret):
                refused[place] = SkipReason.SECRET
            elif len(upload.content) > MAX_BYTES:
                refused[place] = SkipReason.TOO_LARGE
        day = today()

        def work(db: sqlite3.Connection) -> tuple[list[bytes], list[UploadTask]]:
            names, fresh = blobs.store(db, uploads, refused, day)
            return names, _tasks(db, fresh)

        async def keep() -> list[bytes]:
            names, tasks = await self.store.wait_for_change(work)
            self.indexer.put(tasks, first=True)
            return names

        return await to_the_end(keep())  # what is kept and not queued waits for a start

    def _check_room(self) -> None:
        store = self.store
        if self._is_disk_full():
            left = self.free_bytes // 2**20
            raise _full(f"Free some disk space: byok leaves {left:,} MiB to others.")
        with store.reading() as db:
            stored = count_bytes(db)
        if stored > self.store_bytes:
            limit, day = self.store_bytes, today()
            store.writing(evict, store.database, store.batches, limit, day).result()
            with store.reading() as db:
                if count_bytes(db) > limit:
                    raise _full("Raise `store_mb` under [context].")

    def _is_disk_full(self) -> bool:
        folder = self.store.database.path.parent
        return shutil.disk_usage(folder).free < self.free_bytes

    async def checkpoint(
        self, base: str, added: Sequence[bytes], deleted: Sequence[bytes]
    ) -> str | None:
        """Make a checkpoint; None if the base is unknown.

        Raises:
            NotReady: 507, the disk or the store is full.
        """
        await asyncio.to_thread(self._check_room)
        await self.find_missing(added)  # so that files of workspaces are held
        day = today()
        return await self.store.wait_for_change(
            lambda db: checkpoints.make(db, base, added, deleted, day)
        )

    async def resolve(
        self, checkpoint: str, added: Sequence[bytes], deleted: Sequence[bytes]
    ) -> BlobSet:
        """Return the set of blobs that a request names."""
        return await asyncio.to_thread(self._resolve, checkpoint, added, deleted)

    def _resolve(
        self, checkpoint: str, added: Sequence[bytes], deleted: Sequence[bytes]
    ) -> BlobSet:
        with self.store.reading() as db:
            base = self._members(db, checkpoint) if checkpoint else frozenset()
            plus = blobs.find_known(db, added)
            minus = blobs.find_known(db, deleted)
            unfinished = dict(
                db.execute("SELECT id, state FROM blob WHERE state <> 1").fetchall()
            )
            ids = {*(base or ()), *(entry.id for entry in plus.values())}
            ids = blobs.resolve_aliases(db, ids) - {
                entry.id for entry in minus.values()
            }
            named = [
                i for i, state in unfinished.items() if state == NAMED and i in ids
            ]
            unknown = [name for name in added if name not in plus]
            unknown += [
                name
                for (name,) in select_in(
                    db, "SELECT name FROM blob WHERE id IN (?)", named
                )
            ]
            total = db.execute("SELECT count(*) FROM blob").fetchone()[0]
            if checkpoint and base is not None:
                day = today()
                self.store.change(lambda db: checkpoints.touch(db, checkpoint, day))
        pending = sum(state == TO_INDEX and i in ids for i, state in unfinished.items())
        self._touch(ids)
        chunks = self.store.index.chunks * len(ids) // max(1, total)
        members = frozenset(ids)
        # The same names stand for more blobs once they are uploaded: ids make the key.
        view = View(f"{checkpoint}.{hash(members):x}", members, chunks)
        return BlobSet(view, unknown, pending, base is not None)

    def _members(
        self, db: sqlite3.Connection, checkpoint: str
    ) -> frozenset[int] | None:
        found = self._sets.get(checkpoint)
        if found is not None and checkpoints.is_known(db, checkpoint):
            return found
        members = checkpoints.members_of(db, checkpoint)
        if members is None:
            return None
        found = self._sets[checkpoint] = frozenset(members)
        return found

    def _touch(self, ids: Iterable[int]) -> None:
        """Note, once a day for each, that blobs are in use."""
        day = today()
        if self._touched[0] != day:
            self._touched = (day, set())
        new = set(ids) - self._touched[1]
        if new:
            self._touched[1].update(new)
            self.store.change(lambda db: blobs.touch(db, new, day))


def _tasks(db: sqlite3.Connection, ids: Iterable[int]) -> list[UploadTask]:
    return [
        UploadTask(blob_id, path)
        for blob_id, path in select_in(
            db, "SELECT id, path FROM blob WHERE id IN (?)", ids
        )
    ]


def _full(cure: str) -> NotReady:
    return NotReady(
        "There is no space left for uploaded files.",
        code="storage_full",
        status=507,
        hint=cure,
    )
