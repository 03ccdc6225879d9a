"""The code index as a whole: composes store, indexer, uploads and workspaces."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from byok.core.errors import ConfigError, NotReady
from byok.core.threads import to_the_end
from byok.search.index.contents import Contents
from byok.search.index.files.ignore import rules_of
from byok.search.index.files.roots import OwnFolders, check_root
from byok.search.index.indexer import Indexer, Workers
from byok.search.index.parse.worker_pool import Pool
from byok.search.index.store import workspaces
from byok.search.index.store.batches import INDEX_VERSION, Written
from byok.search.index.store.checkpoints import drop_unused
from byok.search.index.store.schema import INDEXED
from byok.search.index.store.store import Store
from byok.search.index.types import (
    CommitHistory,
    IndexOptions,
    Phase,
    State,
    UploadTask,
)
from byok.search.index.uploads import Uploads
from byok.search.index.workspace.sync import Synchroniser
from byok.search.index.workspace.workspace import Stopped, Workspace
from byok.storage.database import today

_log = logging.getLogger(__name__)
# Tried at one start: each may cost seconds, and a hostile folder has many.
_MAX_CRASHERS = 16
_UNUSED_DAYS = 30


class ContextEngine:
    """The code index as a whole: blobs, workspaces, search; see `open_engine`."""

    def __init__(
        self,
        store: Store,
        options: IndexOptions,
        workers: Callable[[int], Workers],
    ) -> None:
        self.options = options
        self._loop = asyncio.get_running_loop()
        self._by_id: dict[int, Workspace] = {}
        self._syncs: dict[int, Synchroniser] = {}
        self._runs: dict[int, asyncio.Task[None]] = {}
        self._openings: list[asyncio.Task[None]] = []
        self._changing = asyncio.Lock()
        self._is_closed = False
        self.store = store
        store.on_written = self._record_written
        store.batches.on_flushed = self._forget_older_versions
        self.contents = Contents(store, self._by_id, tuple(options.allow_secret))
        self.indexer = Indexer(
            workers,
            store,
            self.contents.content_by_id,
            size=options.workers,
            on_flush=partial(self._call_in_loop, self._notify_searchable),
        )
        self.uploads = Uploads(
            store,
            self.indexer,
            self.contents,
            store_bytes=options.store_bytes,
        )

    async def start(self) -> None:
        """Resume unfinished work and follow the declared workspaces."""
        self.uploads.restart()
        for root in self.options.roots:
            try:
                await self._open_workspace(self._checked_root(root), permanent=False)
            except ConfigError as error:
                _log.warning("%s", error.sentence)
                self._openings.append(
                    asyncio.ensure_future(self._open_when_created(root))
                )
        own_folders = OwnFolders(self.options.own_folders)
        with self.store.reading() as db:
            permanent_roots = workspaces.permanent_roots(db)
        for root in permanent_roots:
            if own_folders.contain(root):  # an earlier byok accepted it
                _log.warning("%s is byok's own folder: it is no longer indexed", root)
                await self._forget_folder(root)
            else:
                # Even if it is missing: a disk may be mounted again.
                await self._open_workspace(root, permanent=False)
        await asyncio.to_thread(self._forget_unused)
        await asyncio.to_thread(index_outdated, self.store, self.indexer)
        await asyncio.to_thread(retry_crashers, self.store, self.indexer)

    async def _open_when_created(self, root: Path) -> None:
        """Open a workspace of the settings as soon as its folder exists."""
        while True:
            await asyncio.sleep(self.options.poll_seconds)
            try:
                await self._open_workspace(self._checked_root(root), permanent=False)
            except ConfigError:
                continue  # logged at the start
            except (NotReady, sqlite3.Error) as error:
                _log.warning("%s is not followed yet: %s", root, error)
                continue
            _log.info("%s exists now and is followed", root)
            return

    def _forget_unused(self) -> None:
        day = today()
        self.store.change(lambda db: drop_unused(db, day - _UNUSED_DAYS))
        with self.store.reading() as db:
            unused = db.execute(
                "SELECT id FROM workspace WHERE NOT kept AND used < ?",
                (day - _UNUSED_DAYS,),
            ).fetchall()
        for (workspace_id,) in unused:
            self.store.writing(self.store.batches.drop_workspace, workspace_id)
        self.store.writing(self.store.batches.flush)

    async def close(self) -> None:
        """Stop following, finish the current batch, and close the files."""
        # This ends walks, so that a change that waits for one lets go of the lock.
        self._stop_following()
        async with self._changing:
            self._is_closed = True
            self._stop_following()
            running = [*self._runs.values(), *self._openings]
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.to_thread(self.indexer.close)
            await asyncio.to_thread(self.store.close)

    def _stop_following(self) -> None:
        for task in (*self._runs.values(), *self._openings):
            task.cancel()
        for sync in self._syncs.values():
            sync.close()

    # Workspaces

    @asynccontextmanager
    async def _exclusive_change(self) -> AsyncIterator[None]:
        """Allow one change of the workspaces at a time.

        A change is completed even if its caller is cancelled (`to_the_end`), because a
        workspace that is half added or removed would be worse.

        Raises:
            NotReady: the index was closed meanwhile.
        """
        async with self._changing:
            if self._is_closed:
                raise _closed()
            try:
                yield
            except Stopped as error:
                raise _closed() from error

    def _checked_root(self, root: Path) -> Path:
        """Return the resolved path of a folder; ConfigError if it cannot be indexed."""
        return check_root(root, OwnFolders(self.options.own_folders))

    @property
    def workspaces(self) -> list[Workspace]:
        """The workspaces that are followed, in the order in which they were opened."""
        return list(self._by_id.values())

    @property
    def state(self) -> State:
        """What the index as a whole is doing."""
        if self.indexer.error:
            return State.ERROR
        busy = any(
            w.status.phase in (Phase.SCANNING, Phase.INDEXING) for w in self.workspaces
        )
        if busy or self.indexer.open_tasks:
            return State.INDEXING
        return State.INDEXED if self.store.index.chunks else State.STANDBY

    def history_of(self, workspace: Workspace) -> CommitHistory | None:
        """Return the commits of a workspace, None until they have been read."""
        sync = self._syncs.get(workspace.id)  # None if it was removed meanwhile
        return sync.commits.history if sync else None

    async def detect_changes(self, workspaces: Iterable[Workspace]) -> None:
        """Detect changes in workspaces before a question; half a second at most."""
        ids = {workspace.id for workspace in workspaces}
        syncs = [sync for key, sync in self._syncs.items() if key in ids]
        await asyncio.gather(*(sync.detect_changes() for sync in syncs))

    async def add(self, root: Path, *, permanent: bool = True) -> Workspace:
        """Add a workspace; a permanent one is followed in later runs of byok, too.

        Raises:
            ConfigError: the folder cannot be a workspace.
            NotReady: the database cannot be written; status 507 if the disk is full.
        """
        return await to_the_end(
            self._open_workspace(self._checked_root(root), permanent=permanent)
        )

    async def _open_workspace(self, root: Path, *, permanent: bool) -> Workspace:
        async with self._exclusive_change():
            opened = [space for space in self.workspaces if space.root == root]
            if opened and not permanent:
                return opened[0]
            day = today()
            workspace_id = await self.store.wait_for_change(
                lambda db: workspaces.declare(db, root, day, permanent=permanent)
            )
            if opened:
                return opened[0]
            workspace = Workspace(workspace_id, root, rules_of(root, self.options))
            if any(other.label == workspace.label for other in self.workspaces):
                workspace.label = f"{root.parent.name}-{root.name}-{workspace_id}"
            sql = "SELECT path, blob_id FROM file WHERE workspace_id = ?"
            with self.store.reading() as db:
                workspace.load(dict(db.execute(sql, (workspace_id,)).fetchall()))
            sync = Synchroniser(workspace, self.store, self.indexer, self.options)
            self._by_id[workspace_id] = workspace
            self._syncs[workspace_id] = sync
            self._runs[workspace_id] = asyncio.ensure_future(self._follow(sync))
            return workspace

    async def _follow(self, sync: Synchroniser) -> None:
        """Keep a workspace in sync until cancelled; retry after failures."""
        while True:
            try:
                await sync.run()
            except Exception as error:
                # No error may end the daemon; the status shows it.
                sync.workspace.status.report_failure(error)
                _log.exception("%s could not be synchronised", sync.workspace.root)
            await asyncio.sleep(self.options.poll_seconds)

    async def remove(self, root: Path) -> bool:
        """Remove a workspace from the index; False if it was not one."""
        return await to_the_end(self._remove(root))

    async def _remove(self, root: Path) -> bool:
        async with self._exclusive_change():
            for workspace in self.workspaces:
                if workspace.root == root:
                    break
            else:
                return await self._forget_folder(root)
            del self._by_id[workspace.id]
            run = self._runs.pop(workspace.id)
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            self._syncs.pop(workspace.id).close()
            self.indexer.drop(workspace.id)
            await self._drop(workspace.id)
            return True

    async def _forget_folder(self, root: Path) -> bool:
        """Remove a folder that was indexed before and is not followed now."""
        sql = "SELECT id FROM workspace WHERE root = ?"
        with self.store.reading() as db:
            row = db.execute(sql, (str(root),)).fetchone()
        if row is None:
            return False
        await self._drop(row[0])
        return True

    async def _drop(self, workspace_id: int) -> None:
        batches = self.store.batches

        def work() -> None:
            batches.drop_workspace(workspace_id)
            batches.flush()

        await self.store.run_in_writer(work)

    async def rebuild(self) -> int:
        """Index all blobs again while the old index answers; return their number."""
        return await to_the_end(self._rebuild())

    async def _rebuild(self) -> int:
        async with self._exclusive_change():
            await asyncio.to_thread(self.store.check_space_to_rebuild)
            blobs = await self.store.run_in_writer(self.store.batches.check)
            self.indexer.drop(None)
            self.indexer.put(UploadTask(blob_id, path) for blob_id, path in blobs)
            self.uploads.restart()
            for sync in self._syncs.values():
                await sync.scan()
            return len(blobs)

    # Reports of the indexing thread

    def _call_in_loop(self, work: Callable[..., None], *values: object) -> None:
        """Call a function in the event loop, unless the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *values)

    def _record_written(self, written: Written) -> None:
        workspace = self._by_id.get(written.workspace_id)
        if workspace is not None:
            settled = workspace.update_file(written)
            self._call_in_loop(
                self._report_written, workspace.id, written.path, settled
            )

    def _forget_older_versions(self) -> None:
        for workspace in self.workspaces:
            workspace.forget_older_versions()

    def _report_written(self, workspace_id: int, path: str, settled: bool) -> None:
        if sync := self._syncs.get(workspace_id):
            sync.handle_written(path, settled=settled)

    def _notify_searchable(self) -> None:
        self.uploads.wake_waiting()
        for sync in self._syncs.values():
            sync.handle_searchable()


@asynccontextmanager
async def open_engine(
    database: Path,
    index: Path,
    options: IndexOptions,
    *,
    damage: str = "",
) -> AsyncIterator[ContextEngine]:
    """Open the code index without blocking the loop; close it when the block ends.

    `damage` describes damage that was found in the database while it was in use; such
    a database is set aside.

    Raises:
        CannotStart, IndexInUse: the files cannot be used.
    """

    def workers(size: int) -> Workers:
        return Pool(size, limit=options.parse_seconds)

    # After a crash opening takes seconds, so it runs in a thread.
    open_store = partial(Store, database, index, damage=damage)
    opening = asyncio.ensure_future(asyncio.to_thread(open_store))
    try:
        store = await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_opened)  # otherwise its files stay locked
        raise
    engine = ContextEngine(store, options, workers)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.close()


def index_outdated(store: Store, indexer: Indexer) -> None:
    """Queue the blobs that an older byok indexed; their old chunks answer meanwhile.

    Refused uploads have no content to index, and stay unchanged. Blocks for a moment.
    Without enough free disk space it is left to a later start.
    """
    with store.reading() as db:
        outdated = db.execute(
            "SELECT id, path FROM blob WHERE state = ? AND index_version <> ? AND "
            "(reason IS NULL OR EXISTS(SELECT 1 FROM content WHERE blob_id = blob.id) "
            "OR EXISTS(SELECT 1 FROM file WHERE blob_id = blob.id))",
            (INDEXED, INDEX_VERSION),
        ).fetchall()
    if not outdated:
        return
    try:
        store.check_space_to_rebuild()
    except NotReady as error:
        _log.warning("%s", error.sentence)
        return
    _log.info("indexing %d files again because byok was updated", len(outdated))
    indexer.put(UploadTask(blob_id, path) for blob_id, path in outdated)


def retry_crashers(store: Store, indexer: Indexer) -> None:
    """Queue some of the blobs with which a parser crashed in an earlier run.

    They were indexed without definitions. What made the parser crash may have passed,
    such as a lack of memory. Blocks for a moment.
    """
    delete_unknown = (
        "DELETE FROM parser_crasher WHERE name NOT IN (SELECT name FROM blob)"
    )
    store.change(lambda db: db.execute(delete_unknown))
    with store.reading() as db:
        crashers = db.execute(
            "SELECT b.id, b.path FROM parser_crasher p JOIN blob b ON b.name = p.name "
            "WHERE b.state = ? ORDER BY random() LIMIT ?",
            (INDEXED, _MAX_CRASHERS),
        ).fetchall()
    indexer.put(UploadTask(blob_id, path) for blob_id, path in crashers)


def _close_opened(opening: asyncio.Task[Store]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _closed() -> NotReady:
    return NotReady("The code index was closed.", hint="Try again.")
