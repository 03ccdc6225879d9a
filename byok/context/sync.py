"""Keeping one workspace and the index the same."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable
from contextlib import aclosing
from functools import partial
from pathlib import Path, PurePosixPath

import watchfiles

from byok.context.commits import Commits
from byok.context.indexer import Indexer, Task
from byok.context.reading import Unreadable
from byok.context.store import Store
from byok.context.types import Facts, Phase
from byok.context.watch import Watch, Watcher
from byok.context.workspace import (
    TooManyFiles,
    Workspace,
    changes_rules,
    is_commit,
    is_wanted,
)

_log = logging.getLogger(__name__)
_FLOOD = 500  # changed paths; beyond that the whole folder is looked at
_SETTLE_SECONDS = 2.2
_PATIENCE = 0.5  # seconds that a question waits for what is read anew
_GONE = "its folder is gone"


class Synchroniser:
    """Scans, watches and queues; runs in the loop, walks in threads."""

    def __init__(
        self,
        workspace: Workspace,
        store: Store,
        indexer: Indexer,
        *,
        max_files: int,
        poll_seconds: float = 60.0,
        settle_seconds: float = _SETTLE_SECONDS,
        watch: Watch = watchfiles.watch,
    ) -> None:
        self.workspace = workspace
        self.commits = Commits(workspace.id, workspace.root, store)
        self._store = store
        self._indexer = indexer
        self._max_files = max_files
        self._settle_seconds = settle_seconds
        self._watcher = Watcher(
            workspace.root, partial(is_wanted, workspace.rules),
            poll_seconds=poll_seconds, watch=watch,
        )  # fmt: skip
        self._one_at_a_time = asyncio.Lock()
        self._unsettled: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False  # the last second look
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Look at everything, then follow what changes, for ever."""
        async with aclosing(self._watcher.changes()) as watched:
            async for changes in watched:
                self.workspace.unwatched = self._watcher.note
                await self._follow(changes.paths)

    async def _follow(self, paths: frozenset[str] | None) -> None:
        if paths is None or len(paths) > _FLOOD or any(map(changes_rules, paths)):
            self.workspace.rules.forget_all()
            await self.scan()
        else:
            await self.refresh(paths)
        if paths is None or any(map(is_commit, paths)):
            await self.commits.read()

    async def scan(self) -> None:
        """Walk the folder and queue what changed."""
        async with self._one_at_a_time:
            workspace = self.workspace
            self._enter(Phase.SCANNING)
            waited = {task.path for task in self._indexer.drop(workspace.id)}
            workspace.waiting = self._indexer.open_of(workspace.id)
            known = await asyncio.to_thread(self._known)
            try:
                difference = await asyncio.to_thread(
                    workspace.compare,
                    {path: facts for path, (facts, _) in known.items()},
                    limit=self._max_files,
                )
            except TooManyFiles:
                workspace.tracked = self._max_files
                workspace.built = False
                workspace.trouble = (
                    f"more than {self._max_files:,} files: ripgrep answers instead"
                )
                self._enter(Phase.TOO_LARGE)
                return
            except Unreadable:
                # What is known is kept: a disk may be mounted again.
                workspace.trouble = _GONE
                self._enter(Phase.COMPLETE)
                return
            workspace.trouble = ""
            workspace.tracked = difference.found
            self._look_again(waited.difference(difference.changed))
            await self._drop(difference.gone)
            self._queue(
                Task(
                    workspace.id,
                    path,
                    root=str(workspace.root),
                    known=known.get(path, (None, b""))[1],
                )
                for path in difference.changed
            )

    async def refresh(self, paths: Iterable[str]) -> None:
        """Look at some paths again; a folder stands for all that is below it."""
        if self.workspace.phase is Phase.TOO_LARGE:
            return
        async with self._one_at_a_time:
            changed, gone, deep = await asyncio.to_thread(self._sorted, list(paths))
            if not deep:
                if self._indexer.open_of(self.workspace.id):
                    # A worker may have read it just before it went.
                    self._look_again(set(paths).difference(t.path for t in changed))
                await self._drop(gone)
                self._queue(changed, first=True)
        if deep:
            await self.scan()

    def _sorted(self, paths: list[str]) -> tuple[list[Task], list[str], bool]:
        """Tell changed files from gone ones; folders ask for a whole walk."""
        workspace = self.workspace
        changed: list[Task] = []
        gone: list[str] = []
        for path in paths:
            if _is_behind_link(workspace.root, path):
                continue  # the system's watches follow links
            place = workspace.root / path
            if place.is_dir() and not place.is_symlink():
                if workspace.rules.reason(path, is_dir=True) is None:
                    return [], [], True
                continue
            known = workspace.members_below(path)
            if place.is_file() and workspace.rules.reason(path) is None:
                changed.append(self._task(path))
            else:
                gone += known
        return changed, gone, False

    def _task(self, path: str) -> Task:
        with self._store.reading() as db:
            row = db.execute(
                "SELECT b.name FROM file f JOIN blob b ON b.id = f.blob_id "
                "WHERE f.workspace_id = ? AND f.path = ?",
                (self.workspace.id, path),
            ).fetchone()
        root = str(self.workspace.root)
        return Task(self.workspace.id, path, root=root, known=row[0] if row else b"")

    def _known(self) -> dict[str, tuple[Facts, bytes]]:
        with self._store.reading() as db:
            return {
                path: (Facts(*facts), name or b"")
                for path, name, *facts in db.execute(
                    "SELECT f.path, b.name, f.size, f.mtime_ns, f.ctime_ns, f.inode "
                    "FROM file f LEFT JOIN blob b ON b.id = f.blob_id "
                    "WHERE f.workspace_id = ?",
                    (self.workspace.id,),
                )
            }

    async def _drop(self, paths: list[str]) -> None:
        if not paths:
            return
        workspace, batches = self.workspace, self._store.batches

        def work() -> None:
            batches.drop_files(workspace.id, paths)
            batches.flush()
            workspace.drop_members(paths)

        await asyncio.wrap_future(self._store.writing(work))

    def _queue(self, tasks: Iterable[Task], *, first: bool = False) -> None:
        workspace = self.workspace
        new = list(tasks)
        if not workspace.waiting:
            workspace.queued = 0
        workspace.queued += len(new)
        workspace.waiting += len(new)
        self._indexer.put(new, first=first)
        if self._indexer.open_of(workspace.id):
            self._enter(Phase.INDEXING)
        else:
            self._complete()

    def done(self, path: str, *, settled: bool) -> None:
        """Note that a file was written; called in the loop."""
        self.workspace.waiting = max(0, self.workspace.waiting - 1)
        if not settled:
            self._look_again([path])

    def searchable(self) -> None:
        """Note that everything written so far is found; called in the loop."""
        workspace = self.workspace
        open_tasks = self._indexer.open_of(workspace.id)
        if workspace.phase is Phase.INDEXING and not open_tasks:
            self._complete()

    def _complete(self) -> None:
        self.workspace.waiting = 0
        self.workspace.built = True
        self._enter(Phase.COMPLETE)

    def _look_again(self, paths: Iterable[str]) -> None:
        """Look at paths once more in a while, when what they are is settled."""
        self._unsettled.update(paths)
        if self._unsettled and self._timer is None and not self.workspace.stopped:
            self._timer = self._loop.call_later(self._settle_seconds, self._recheck)

    def _recheck(self) -> None:
        paths, self._unsettled, self._timer = self._unsettled, set(), None
        look = self.scan() if self._failed else self.refresh(paths)
        self._failed = False
        self._start(look, paths)

    def _start(
        self, work: Coroutine[None, None, None], paths: Collection[str] = ()
    ) -> asyncio.Task[None]:
        """Run something beside; if it fails, `paths` are looked at again."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, paths))
        return task

    def _ended(self, paths: Collection[str], task: asyncio.Task[None]) -> None:
        """Say what failed, and look at everything, as the engine does with `run`."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.workspace.trouble = f"not in step: {error}"
            _log.error("%s: %s", self.workspace.root, error)
            self._failed = True
            self._look_again(paths or ("",))

    async def look(self) -> None:
        """Catch up, before a question is answered, with what no event may have told.

        Waits a moment at most: what takes longer is there for the next question.
        """
        if await self.commits.are_new():
            await asyncio.wait([self._start(self.commits.read())], timeout=_PATIENCE)

    def _enter(self, phase: Phase) -> None:
        workspace = self.workspace
        if workspace.phase is not phase or phase is Phase.SCANNING:
            workspace.phase = phase
            _log.info("%s: %s", workspace.root, phase)

    def close(self) -> None:
        """Stop the timers, and a walk that is under way."""
        self.workspace.stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()


def _is_behind_link(root: Path, path: str) -> bool:
    return any(
        (root / above).is_symlink() for above in PurePosixPath(path).parents[:-1]
    )
