"""Keeps the index of one workspace the same as the folder on disk.

Three sources tell of changes, because none is enough alone:
- Events of the system come within milliseconds, but are lost: queues overflow, network
  disks send none, a folder is created and filled before it is watched.
- A comparison of everything (size, times, inode) finds what events missed. It runs each
  `compare_seconds`, and beside a question if the last one is a minute old. 50,000 files
  take half a second, so each comparison may use 5 % of the time at most.
- A second look, 2.2 seconds after a file was read. Time stamps are coarse: a change
  right after reading may leave the same size and time, and would never be noticed.

Whatever the source, the path is the same: `Disk` compares with the rows, files that are
gone are dropped, changed ones are queued. Only one comparison runs at a time
(`_one_at_a_time`); two would queue files twice and drop what the other just found.

Details that are easy to break:
- A whole comparison drops the queued tasks of its folders first and finds them again.
  Tasks that it does not find again, although they waited, get a second look.
- If the folder is gone, nothing is dropped: a disk may be mounted again.
- With too many files the phase is TOO_LARGE, events only shorten the time to the next
  comparison, and ripgrep answers until the folder is small enough.
- A failure is looked at again (`_handle_end`) and never ends the watching. The user
  sees it as a note; the daemon goes on.
- An ignore file that changes leads to a scan, because it changes what other files are.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from byok.search.index.files.ignore import IGNORE_FILES
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.files.scan import WHOLE, is_below, is_folder_at
from byok.search.index.indexer import Indexer
from byok.search.index.store.store import Store
from byok.search.index.types import FileFacts, IndexOptions, Phase, WorkspaceTask
from byok.search.index.workspace.git_history import Commits
from byok.search.index.workspace.watch import Watcher, Watches, watches_of
from byok.search.index.workspace.workspace import TooManyFiles, Workspace, is_wanted

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 2.2
_OLD, _OLD_UNWATCHED = 60.0, 2.0  # seconds since a comparison, for a question
# Of the time since the last comparison, the next one takes at most this share.
_SHARE, _SHARE_TOO_LARGE = 20, 3
_PATIENCE = 0.5  # seconds that a question waits for a comparison


class Difference(NamedTuple):
    """Files to read, files that are gone, folders to look into."""

    changed: list[WorkspaceTask]
    gone: list[str]
    tops: frozenset[str] = frozenset()


class Disk:
    """A workspace on disk; calls block, and watch each folder they look into."""

    def __init__(self, workspace: Workspace, store: Store, watcher: Watcher) -> None:
        self._workspace = workspace
        self._store = store
        self._watcher = watcher

    def compare(self, tops: Collection[str], *, limit: int) -> Difference:
        """Walk some folders; raises the errors of `Workspace.compare`."""
        workspace = self._workspace
        entered: set[str] = set()

        def enter(path: str) -> None:
            entered.add(path)
            self._watcher.enter(path)

        for top in tops:
            workspace.rules.forget(top)
        if tops == WHOLE:
            for folder in workspace.read_steering().folders:
                enter(folder)
        known = self._indexed_files(tops)
        compared = workspace.compare(
            {path: facts for path, (facts, _) in known.items()},
            limit=limit,
            tops=tops,
            entering=enter,
        )
        self._watcher.keep(tops, entered)
        versions = {path: name for path, (_, name) in known.items()}
        return Difference(self._tasks(compared.changed, versions), compared.gone)

    def look_at(self, paths: Iterable[str]) -> Difference:
        """Sort paths into changed files, files that are gone, and folders to walk.

        Raises:
            Unreadable: the root is gone.
        """
        wanted = {path for changed in paths for path in _affected_paths(changed)}
        rules = self._workspace.rules
        with Folder(self._workspace.root) as folder:
            kinds = {path: is_folder_at(folder, path) for path in wanted - WHOLE}
        tops = {
            path
            for path, is_folder in kinds.items()
            if is_folder and rules.reason(path, is_dir=True) is None
        } | (wanted & WHOLE)
        tops = {
            top for top in tops if not top or not is_below(top.rpartition("/")[0], tops)
        }
        rest = {path: kind for path, kind in kinds.items() if not is_below(path, tops)}
        changed = [
            path
            for path, is_folder in rest.items()
            if is_folder is False and rules.reason(path) is None
        ]
        away = rest.keys() - set(changed)
        self._watcher.keep(away, ())
        versions = {
            path: name for path, (_, name) in self._indexed_files(changed).items()
        }
        return Difference(
            self._tasks(changed, versions),
            [*self._indexed_files(away)],
            frozenset(tops),
        )

    def _tasks(
        self, paths: Iterable[str], versions: dict[str, bytes]
    ) -> list[WorkspaceTask]:
        workspace = self._workspace
        root = str(workspace.root)
        return [
            WorkspaceTask(workspace.id, path, root, versions.get(path, b""))
            for path in paths
        ]

    def _indexed_files(
        self, tops: Collection[str]
    ) -> dict[str, tuple[FileFacts, bytes]]:
        """Return the files at and below some paths: facts, and names of versions."""
        ranges = [
            some
            for top in tops
            for some in ((top, f"{top}\0"), (f"{top}/", f"{top}0"))  # 0 follows /
        ]
        if "" in tops:
            ranges = [("", chr(sys.maxunicode))]
        with self._store.reading() as db:
            return {
                path: (FileFacts(*facts), name or b"")
                for first, end in ranges
                for path, name, *facts in db.execute(
                    "SELECT f.path, b.name, f.size, f.mtime_ns, f.ctime_ns, f.inode "
                    "FROM file f LEFT JOIN blob b ON b.id = f.blob_id "
                    "WHERE f.workspace_id = ? AND f.path >= ? AND f.path < ?",
                    (self._workspace.id, first, end),
                )
            }


def _affected_paths(path: str) -> tuple[str, ...]:
    """Return what to look at: the rules of a folder hold for all that is below."""
    folder, _, name = path.rpartition("/")
    return (path, folder) if name in IGNORE_FILES else (path,)


class Synchroniser:
    """Keeps workspaces in step with the disk; runs in the loop, scans in threads.

    Events tell what changed. As a net below them everything is compared every
    `compare_seconds`, and beside a question when that was a while ago.
    """

    def __init__(
        self,
        workspace: Workspace,
        store: Store,
        indexer: Indexer,
        options: IndexOptions,
        *,
        settle_seconds: float = _SETTLE_SECONDS,
        watches: Callable[[Path], Watches] = watches_of,
    ) -> None:
        self.workspace = workspace
        self.commits = Commits(workspace.id, workspace.root, store)
        self._store = store
        self._indexer = indexer
        self._options = options
        self._settle_seconds = settle_seconds
        self._watcher = Watcher(
            workspace.root, partial(is_wanted, workspace),
            tell=workspace.status.report_watching,
            poll_seconds=options.poll_seconds, watches=watches,
        )  # fmt: skip
        self._disk = Disk(workspace, store, self._watcher)
        self._one_at_a_time = asyncio.Lock()
        self._unsettled: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._compared, self._took = 0.0, 0.0  # when, and for how long
        self._failed = False  # the last second look
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Scan everything, then follow changes until cancelled.

        What fails is looked at again, and watching continues.
        """
        async with aclosing(self._watcher.changes()) as watched:
            async for paths in watched:
                await asyncio.wait([self._start(self._follow(paths))])

    async def _follow(self, paths: frozenset[str] | None) -> None:
        if paths is None:
            await self.scan()
        else:
            await self.refresh(paths)
        if paths is None or not self.workspace.steering.commits.isdisjoint(paths):
            await self.commits.read()

    async def scan(self) -> None:
        """Walk the folder and queue what changed."""
        async with self._one_at_a_time:
            self.workspace.status.enter(Phase.SCANNING)
            await self._compare(WHOLE)

    async def refresh(self, paths: Iterable[str]) -> None:
        """Look at some paths again; a folder stands for everything below it."""
        changed = frozenset(paths)
        if not self.workspace.steering.rules.isdisjoint(changed):
            await self.scan()
        elif self.workspace.status.phase is Phase.TOO_LARGE:
            self._compare_after(0, share=_SHARE_TOO_LARGE)  # it may be over
        else:
            async with self._one_at_a_time:
                await self._refresh(changed)

    async def _refresh(self, paths: frozenset[str]) -> None:
        try:
            found = await asyncio.to_thread(self._disk.look_at, paths)
        except Unreadable:
            await self._compare(WHOLE)
            return
        if self._indexer.open_of(self.workspace.id):
            # A worker may have read it just before it went.
            self._look_again(paths.difference(task.path for task in found.changed))
        await self._drop(found.gone)
        self.workspace.expect(task.path for task in found.changed)
        self._queue(found.changed, first=True)
        fits = self.workspace.file_count <= self._options.max_files
        if tops := found.tops if fits else WHOLE:
            await self._compare(tops)

    async def _compare(self, tops: Collection[str]) -> None:
        """Walk some folders, drop what is gone and queue what changed."""
        workspace, status = self.workspace, self.workspace.status
        began = self._loop.time()
        waited = {task.path for task in self._indexer.drop(workspace.id, tops)}
        status.waiting = self._indexer.open_of(workspace.id)
        try:
            found = await asyncio.to_thread(
                self._disk.compare, tops, limit=self._options.max_files
            )
        except TooManyFiles:
            status.give_up(self._options.max_files)
            return
        except Unreadable:
            # What is known is kept: a disk may be mounted again.
            status.lose_folder()
            return
        finally:
            if "" in tops:
                self._compared = self._loop.time()
                self._took = self._compared - began
                self._compare_after(self._options.compare_seconds)
        status.trouble = ""
        self._look_again(waited.difference(task.path for task in found.changed))
        await self._drop(found.gone)
        self._queue(found.changed)

    def _compare_after(self, seconds: float, share: int = _SHARE) -> None:
        """Plan the next comparison, `seconds` after the last one or later."""
        if self._clock is not None:
            self._clock.cancel()
        if not self._closed:
            when = self._compared + max(seconds, share * self._took)
            self._clock = self._loop.call_at(
                when, lambda: self._start(self._compare_all())
            )

    async def _compare_all(self) -> None:
        """Find changes without events; while files are indexed, wait for that first."""
        async with self._one_at_a_time:
            if self.workspace.status.phase is Phase.INDEXING:
                self._compared = self._loop.time()
                self._compare_after(self._options.compare_seconds)
            else:
                await self._compare(WHOLE)
        await self.commits.read()

    async def look(self) -> None:
        """Before a question, look for changes that no event may have reported.

        Waits half a second at most; a longer comparison is for the next question.
        """
        tasks = []
        if await self.commits.are_new():
            tasks.append(self._start(self.commits.read()))
        if self._is_old():
            compared = self._start(self._compare_all())
            if self._took < _PATIENCE:
                tasks.append(compared)
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)

    def _is_old(self) -> bool:
        """Tell whether the last comparison is too old for a question."""
        if not self._compared or self._one_at_a_time.locked():
            return False
        old = _OLD_UNWATCHED if self.workspace.status.unwatched else _OLD
        return self._loop.time() - self._compared > max(old, _SHARE * self._took)

    async def _drop(self, paths: list[str]) -> None:
        if not paths:
            return
        workspace, batches = self.workspace, self._store.batches

        def work() -> None:
            batches.drop_files(workspace.id, paths)
            batches.flush()
            workspace.drop_members(paths)

        await asyncio.wrap_future(self._store.writing(work))

    def _queue(self, tasks: Iterable[WorkspaceTask], *, first: bool = False) -> None:
        workspace = self.workspace
        new = list(tasks)
        workspace.status.add_queued(len(new))
        self._indexer.put(new, first=first)
        if self._indexer.open_of(workspace.id):
            workspace.status.enter(Phase.INDEXING)
        else:
            self.workspace.status.complete()

    def note_written(self, path: str, *, settled: bool) -> None:
        """Note that a file was written; called in the loop."""
        status = self.workspace.status
        status.waiting = max(0, status.waiting - 1)
        if not settled:
            self._look_again([path])

    def searchable(self) -> None:
        """Note that everything written so far is found; called in the loop."""
        status = self.workspace.status
        open_tasks = self._indexer.open_of(self.workspace.id)
        if status.phase is Phase.INDEXING and not open_tasks:
            status.complete()

    def _look_again(self, paths: Iterable[str]) -> None:
        """Look at paths again after a while, when their time stamps are old enough."""
        self._unsettled.update(paths)
        if self._unsettled and self._timer is None and not self._closed:
            self._timer = self._loop.call_later(self._settle_seconds, self._recheck)

    def _recheck(self) -> None:
        paths, self._unsettled, self._timer = self._unsettled, set(), None
        look = self.scan() if self._failed else self.refresh(paths)
        self._failed = False
        self._start(look, paths)

    def _start(
        self, work: Coroutine[None, None, None], paths: Collection[str] = ()
    ) -> asyncio.Task[None]:
        """Run something in a task; if it fails, `paths` are looked at again."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._handle_end, paths))
        return task

    def _handle_end(self, paths: Collection[str], task: asyncio.Task[None]) -> None:
        """Report a failure, and look at its paths, or everything, again."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.workspace.status.report_failure(error)
            root = self.workspace.root
            _log.error("%s could not be synchronised", root, exc_info=error)
            self._failed = True
            self._look_again(paths or ("",))

    def close(self) -> None:
        """Stop the timers, and a running walk."""
        self._closed = True
        self.workspace.stop()
        for timer in (self._timer, self._clock):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
