"""Uploads of clients, stored and queued for the index; checkpoints, sets of blobs."""

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
from byok.core.code_query import BlobNames, Upload
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
_MAX_CACHED_SETS = 8
_MIN_FREE_BYTES = 512 * 2**20
# How long a question waits for the indexing of the last uploads: a client that is told
# "not yet" asks again only after three seconds.
_MAX_WAIT_SECONDS = 1.0


class Missing(NamedTuple):
    """Names that must be uploaded, and names that are stored but not searchable yet."""

    unknown: list[bytes]
    nonindexed: list[bytes]


class BlobSet(NamedTuple):
    """The blobs that a client asks about; `pending` of them are not searchable yet."""

    view: View
    unknown: list[bytes]
    pending: int
    checkpoint_found: bool


class Uploads(Struct, eq=False):
    """The uploaded blobs, checkpoints and names, as clients see them.

    `store_bytes` limits the stored contents, and `free_bytes` of the disk stay free.
    `_touched` has today's day and the ids of the blobs that were recorded as used.
    """

    store: Store
    indexer: Indexer
    contents: Contents
    store_bytes: int
    free_bytes: int = _MIN_FREE_BYTES
    patience: float = _MAX_WAIT_SECONDS
    _searchable: asyncio.Event = field(default_factory=asyncio.Event)
    _touched: tuple[int, set[int]] = (0, set())
    _sets: BoundedMap[str, frozenset[int]] = field(
        default_factory=lambda: BoundedMap[str, frozenset[int]](_MAX_CACHED_SETS)
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
            self.indexer.put(_tasks_of(db, waiting))

    def wake_waiting(self) -> None:
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
        """Return which names must be uploaded, and which are not searchable yet."""
        deadline = time.monotonic() + self.patience
        while True:
            open_tasks = self.indexer.open_tasks
            missing = await asyncio.to_thread(self._find_missing, names)
            remaining = deadline - time.monotonic()
            if not (missing.nonindexed and open_tasks and remaining > 0):
                return missing
            await self.wait_until_indexed(remaining)

    def _find_missing(self, names: Sequence[bytes]) -> Missing:
        with self.store.reading() as db:
            known = blobs.find_known(db, names)
        self._touch(entry.id for entry in known.values())
        stored = self._store_files(known.values())
        unknown = [
            name
            for name in names
            if name not in known
            or not (known[name].is_held or known[name].id in stored)
        ]
        absent = set(unknown)
        waiting = [
            name
            for name in names
            if name not in absent and known[name].state == TO_INDEX
        ]
        return Missing(unknown, waiting)

    def _store_files(self, known: Iterable[Known]) -> frozenset[int]:
        """Store the contents of files of workspaces; none if the disk is full."""
        unstored = [e.id for e in known if e.state != NAMED and not e.is_held]
        if not unstored or self._is_disk_full():
            return frozenset()
        try:
            return self.contents.store_unchanged(unstored)
        except (NotReady, sqlite3.OperationalError) as error:
            _log.warning("cannot store files of workspaces: %s", error)
            return frozenset()

    async def upload(self, uploads: Sequence[Upload]) -> list[bytes]:
        """Store uploads durably, queue them for the index, and return their names.

        Raises:
            NotReady: 507, the disk or the store is full.
        """
        await asyncio.to_thread(self._check_space)
        refused: dict[int, SkipReason] = {}
        for index, upload in enumerate(uploads):
            if not is_path(upload.path):
                refused[index] = SkipReason.NOT_A_FILE
            elif is_secret(upload.path, self.contents.allow_secret):
                refused[index] = SkipReason.SECRET
            elif len(upload.content) > MAX_BYTES:
                refused[index] = SkipReason.TOO_LARGE
        day = today()

        def write(db: sqlite3.Connection) -> tuple[list[bytes], list[UploadTask]]:
            names, new_ids = blobs.store(db, uploads, refused, day)
            return names, _tasks_of(db, new_ids)

        async def store_and_queue() -> list[bytes]:
            names, tasks = await self.store.wait_for_change(write)
            self.indexer.put(tasks, first=True)
            return names

        # Even if the client is gone: a blob that is stored and not queued would be
        # indexed only after the next start.
        return await to_the_end(store_and_queue())

    def _check_space(self) -> None:
        store = self.store
        if self._is_disk_full():
            free = self.free_bytes // 2**20
            raise _no_space(
                f"Free some disk space: byok leaves {free:,} MiB to others."
            )
        with store.reading() as db:
            stored = count_bytes(db)
        if stored > self.store_bytes:
            limit, day = self.store_bytes, today()
            store.writing(evict, store.database, store.batches, limit, day).result()
            with store.reading() as db:
                if count_bytes(db) > limit:
                    raise _no_space("Raise `store_mb` under [context].")

    def _is_disk_full(self) -> bool:
        folder = self.store.database.path.parent
        return shutil.disk_usage(folder).free < self.free_bytes

    async def checkpoint(self, names: BlobNames) -> str | None:
        """Make a checkpoint and return its id; None if its base is unknown.

        Raises:
            NotReady: 507, the disk or the store is full.
        """
        await asyncio.to_thread(self._check_space)
        await self.find_missing(names.added)  # which stores files of workspaces
        day = today()
        return await self.store.wait_for_change(
            lambda db: checkpoints.make(
                db, names.checkpoint, names.added, names.deleted, day
            )
        )

    async def resolve(self, names: BlobNames) -> BlobSet:
        """Return the set of blobs that a request names."""
        return await asyncio.to_thread(self._resolve, names)

    def _resolve(self, names: BlobNames) -> BlobSet:
        checkpoint = names.checkpoint
        with self.store.reading() as db:
            base = self._members(db, checkpoint) if checkpoint else frozenset()
            plus = blobs.find_known(db, names.added)
            minus = blobs.find_known(db, names.deleted)
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
            unknown = [name for name in names.added if name not in plus]
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
        # The key is made of ids: the same names mean more blobs once they are uploaded.
        view = View(f"{checkpoint}.{hash(members):x}", members, chunks)
        return BlobSet(view, unknown, pending, base is not None)

    def _members(
        self, db: sqlite3.Connection, checkpoint: str
    ) -> frozenset[int] | None:
        cached = self._sets.get(checkpoint)
        if cached is not None and checkpoints.is_known(db, checkpoint):
            return cached
        ids = checkpoints.members_of(db, checkpoint)
        if ids is None:
            return None
        members = self._sets[checkpoint] = frozenset(ids)
        return members

    def _touch(self, ids: Iterable[int]) -> None:
        """Record, once a day for each blob, that it is in use."""
        day = today()
        if self._touched[0] != day:
            self._touched = (day, set())
        new = set(ids) - self._touched[1]
        if new:
            self._touched[1].update(new)
            self.store.change(lambda db: blobs.touch(db, new, day))


def _tasks_of(db: sqlite3.Connection, ids: Iterable[int]) -> list[UploadTask]:
    return [
        UploadTask(blob_id, path)
        for blob_id, path in select_in(
            db, "SELECT id, path FROM blob WHERE id IN (?)", ids
        )
    ]


def _no_space(cure: str) -> NotReady:
    return NotReady(
        "There is no space left for uploaded files.",
        code="storage_full",
        status=507,
        hint=cure,
    )
