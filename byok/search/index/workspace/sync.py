"""Keeps the index of one workspace the same as the folder on disk.

Changes come from three sources, because none is enough alone:
- Events of the system come within milliseconds, but can be lost: queues overflow,
  network disks send none, a folder is created and filled before it is watched.
- A comparison of all files (size, times, inode) finds what events missed. It runs each
  `compare_seconds`, and at a question if the last one is a minute old. 50,000 files
  take half a second, so comparisons may use 5 % of the time at most.
- A second check, 2.2 seconds after a file was read. Time stamps are coarse: a change
  right after reading may leave size and time the same, and would never be noticed.

Each source leads to the same steps: `Disk` compares with the rows of the database,
files that are gone are dropped, changed ones are queued. Only one comparison runs at a
time (`_one_at_a_time`); two would queue files twice, and each would drop tasks that the
other just queued.

Details that are easy to break:
- A comparison first drops the queued tasks of its folders, and finds them again. Files
  that were queued and are not found again get a second check.
- If the folder is gone, nothing is dropped: a disk may be mounted again.
- With too many files the phase is TOO_LARGE, events only shorten the time to the next
  comparison, and ripgrep answers until the folder is small enough.
- A failure leads to a second check (`_handle_end`) and never ends the watching. The
  user sees it as a note; the daemon goes on.
- An ignore file that changes leads to a scan, because other files may appear or go.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Coroutine, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from byok.search.index.files.ignore import IGNORE_FILES
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.files.scan import WHOLE, is_below, is_folder_at, steering_of
from byok.search.index.indexer import Indexer
from byok.search.index.store.store import Store
from byok.search.index.types import FileFacts, IndexOptions, Phase, WorkspaceTask
from byok.search.index.workspace.git_history import Commits
from byok.search.index.workspace.watch import Watcher, Watches, watches_of
from byok.search.index.workspace.workspace import TooManyFiles, Workspace, is_wanted

_log = logging.getLogger(__name__)
_SETTLE_SECONDS = 2.2
_MAX_AGE, _MAX_AGE_UNWATCHED = 60.0, 2.0  # seconds since a comparison, for a question
# The pause before a comparison is at least so many times as long as the last one took.
_PAUSE_FACTOR, _PAUSE_FACTOR_TOO_LARGE = 20, 3
_MAX_WAIT_SECONDS = 0.5  # for a comparison before a question


class Difference(NamedTuple):
    """Files to read, files that are gone, and folders to walk."""

    changed: list[WorkspaceTask]
    gone: list[str]
    tops: frozenset[str] = frozenset()


class Disk(Struct, eq=False):
    """A workspace on disk; its calls block, and watch each folder that they walk."""

    workspace: Workspace
    store: Store
    watcher: Watcher

    def compare(self, tops: Collection[str], *, limit: int) -> Difference:
        """Walk the folders `tops`; raises the errors of `Workspace.compare`."""
        workspace = self.workspace
        entered: set[str] = set()

        def enter(path: str) -> None:
            entered.add(path)
            self.watcher.enter(path)

        for top in tops:
            workspace.rules.forget(top)
        if tops == WHOLE:
            workspace.steering = steering_of(workspace.root)
            for folder in workspace.steering.folders:
                enter(folder)
        known = self._indexed_files(tops)
        changed, gone = workspace.compare(
            {path: facts for path, (facts, _) in known.items()},
            limit=limit,
            tops=tops,
            entering=enter,
        )
        self.watcher.remove_unentered(tops, entered)
        versions = {path: name for path, (_, name) in known.items()}
        return Difference(self._tasks(changed, versions), gone)

    def classify(self, paths: Collection[str]) -> Difference:
        """Sort paths into changed files, files that are gone, and folders to walk.

        Raises:
            Unreadable: the root is gone.
        """
        affected = set(paths)
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name in IGNORE_FILES:  # it affects all files of its folder
                affected.add(folder)
        rules = self.workspace.rules
        with Folder(self.workspace.root) as root:
            kinds = {path: is_folder_at(root, path) for path in affected - WHOLE}
        tops = {
            path
            for path, is_folder in kinds.items()
            if is_folder and rules.reason(path, is_dir=True) is None
        } | (affected & WHOLE)
        tops = {
            top for top in tops if not top or not is_below(top.rpartition("/")[0], tops)
        }
        others = {p: kind for p, kind in kinds.items() if not is_below(p, tops)}
        changed = [
            path
            for path, is_folder in others.items()
            if is_folder is False and rules.reason(path) is None
        ]
        gone = others.keys() - set(changed)
        self.watcher.remove_unentered(gone, ())
        versions = {
            path: name for path, (_, name) in self._indexed_files(changed).items()
        }
        return Difference(
            self._tasks(changed, versions),
            [*self._indexed_files(gone)],
            frozenset(tops),
        )

    def _tasks(
        self, paths: Iterable[str], versions: dict[str, bytes]
    ) -> list[WorkspaceTask]:
        workspace = self.workspace
        root = str(workspace.root)
        return [
            WorkspaceTask(workspace.id, path, root, versions.get(path, b""))
            for path in paths
        ]

    def _indexed_files(
        self, tops: Collection[str]
    ) -> dict[str, tuple[FileFacts, bytes]]:
        """Return the facts and version names of the files at and below some paths."""
        ranges = [
            pair
            for top in tops
            for pair in ((top, f"{top}\0"), (f"{top}/", f"{top}0"))  # 0 follows /
        ]
        if "" in tops:
            ranges = [("", chr(sys.maxunicode))]
        with self.store.reading() as db:
            return {
                path: (FileFacts(*facts), name or b"")
                for first, end in ranges
                for path, name, *facts in db.execute(
                    "SELECT f.path, b.name, f.size, f.mtime_ns, f.ctime_ns, f.inode "
                    "FROM file f LEFT JOIN blob b ON b.id = f.blob_id "
                    "WHERE f.workspace_id = ? AND f.path >= ? AND f.path < ?",
                    (self.workspace.id, first, end),
                )
            }


class Synchroniser:
    """Keeps a workspace in step with the disk; runs in the loop, scans in threads."""

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
        self._compared_at = 0.0
        self._compare_seconds = 0.0  # how long the last comparison took
        self._recheck_all = False  # set when a task failed
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Scan everything, then follow changes until cancelled.

        After a failure the same paths are checked again, and watching continues.
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
        """Walk the whole folder and queue changed files."""
        async with self._one_at_a_time:
            self.workspace.status.enter(Phase.SCANNING)
            await self._compare(WHOLE)

    async def refresh(self, paths: Iterable[str]) -> None:
        """Check some paths for changes; a folder stands for everything below it."""
        changed = frozenset(paths)
        if not self.workspace.steering.rules.isdisjoint(changed):
            await self.scan()
        elif self.workspace.status.phase is Phase.TOO_LARGE:
            # Perhaps enough files were removed.
            self._compare_after(0, pause_factor=_PAUSE_FACTOR_TOO_LARGE)
        else:
            async with self._one_at_a_time:
                await self._refresh(changed)

    async def _refresh(self, paths: frozenset[str]) -> None:
        try:
            difference = await asyncio.to_thread(self._disk.classify, paths)
        except Unreadable:
            await self._compare(WHOLE)
            return
        changed = [task.path for task in difference.changed]
        if self._indexer.open_of(self.workspace.id):
            # A worker may have read a file just before it was removed.
            self._recheck_later(paths.difference(changed))
        await self._drop(difference.gone)
        self.workspace.expect(changed)
        self._queue(difference.changed, first=True)
        fits = self.workspace.file_count <= self._options.max_files
        if tops := difference.tops if fits else WHOLE:
            await self._compare(tops)

    async def _compare(self, tops: Collection[str]) -> None:
        """Walk some folders, drop files that are gone, and queue changed ones."""
        workspace, status = self.workspace, self.workspace.status
        start = self._loop.time()
        dropped = {task.path for task in self._indexer.drop(workspace.id, tops)}
        status.waiting = self._indexer.open_of(workspace.id)
        try:
            difference = await asyncio.to_thread(
                self._disk.compare, tops, limit=self._options.max_files
            )
        except TooManyFiles:
            status.give_up(self._options.max_files)
            return
        except Unreadable:
            # Nothing is dropped: a disk may be mounted again.
            status.lose_folder()
            return
        finally:
            if "" in tops:
                self._compared_at = self._loop.time()
                self._compare_seconds = self._compared_at - start
                self._compare_after(self._options.compare_seconds)
        status.trouble = ""
        self._recheck_later(dropped.difference(t.path for t in difference.changed))
        await self._drop(difference.gone)
        self._queue(difference.changed)

    def _compare_after(self, seconds: float, pause_factor: int = _PAUSE_FACTOR) -> None:
        """Schedule the next comparison, `seconds` after the last one or later."""
        if self._clock is not None:
            self._clock.cancel()
        if not self._closed:
            pause = max(seconds, pause_factor * self._compare_seconds)
            self._clock = self._loop.call_at(
                self._compared_at + pause, lambda: self._start(self._compare_all())
            )

    async def _compare_all(self) -> None:
        """Compare all files; while files are being indexed, postpone it."""
        async with self._one_at_a_time:
            if self.workspace.status.phase is Phase.INDEXING:
                self._compared_at = self._loop.time()
                self._compare_after(self._options.compare_seconds)
            else:
                await self._compare(WHOLE)
        await self.commits.read()

    async def detect_changes(self) -> None:
        """Detect changes that no event reported, before a question is answered.

        Waits half a second at most; a longer comparison helps the next question.
        """
        tasks = []
        if await self.commits.are_new():
            tasks.append(self._start(self.commits.read()))
        if self._is_outdated():
            compared = self._start(self._compare_all())
            if self._compare_seconds < _MAX_WAIT_SECONDS:
                tasks.append(compared)
        if tasks:
            await asyncio.wait(tasks, timeout=_MAX_WAIT_SECONDS)

    def _is_outdated(self) -> bool:
        """Tell whether the last comparison is too old for a question."""
        if not self._compared_at or self._one_at_a_time.locked():
            return False
        max_age = _MAX_AGE_UNWATCHED if self.workspace.status.unwatched else _MAX_AGE
        max_age = max(max_age, _PAUSE_FACTOR * self._compare_seconds)
        return self._loop.time() - self._compared_at > max_age

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

    def handle_written(self, path: str, *, settled: bool) -> None:
        """Record that a file was written; called in the loop.

        It is checked again unless `settled`.
        """
        status = self.workspace.status
        status.waiting = max(0, status.waiting - 1)
        if not settled:
            self._recheck_later([path])

    def handle_searchable(self) -> None:
        """Record that all written files are searchable; called in the loop."""
        status = self.workspace.status
        open_tasks = self._indexer.open_of(self.workspace.id)
        if status.phase is Phase.INDEXING and not open_tasks:
            status.complete()

    def _recheck_later(self, paths: Iterable[str]) -> None:
        """Check paths again as soon as their time stamps are old enough."""
        self._unsettled.update(paths)
        if self._unsettled and self._timer is None and not self._closed:
            self._timer = self._loop.call_later(self._settle_seconds, self._recheck)

    def _recheck(self) -> None:
        paths, self._unsettled, self._timer = self._unsettled, set(), None
        check = self.scan() if self._recheck_all else self.refresh(paths)
        self._recheck_all = False
        self._start(check, paths)

    def _start(
        self, work: Coroutine[None, None, None], paths: Collection[str] = ()
    ) -> asyncio.Task[None]:
        """Start a task; if it fails, `paths` are checked again."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._handle_end, paths))
        return task

    def _handle_end(self, paths: Collection[str], task: asyncio.Task[None]) -> None:
        """Report a failed task, and schedule a check of everything."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.workspace.status.report_failure(error)
            root = self.workspace.root
            _log.error("%s could not be synchronised", root, exc_info=error)
            self._recheck_all = True
            self._recheck_later(paths or ("",))

    def close(self) -> None:
        """Stop the timers, and a running walk."""
        self._closed = True
        self.workspace.stop()
        for timer in (self._timer, self._clock):
            if timer is not None:
                timer.cancel()
        for task in self._tasks:
            task.cancel()
