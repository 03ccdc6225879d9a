"""The indexing thread: takes queued tasks, lets workers prepare them, stores results.

Why one thread and one queue for all workspaces and uploads: SQLite and tantivy each
allow a single writer, and the costly part, parsing, runs in other processes anyway. So
more threads would gain nothing, and the order is simple: uploads go to the front,
because a client waits for them, before the files of workspaces.

A task is open until its documents are committed (`_flush`), not until it is written.
So `open_of` tells when a workspace is complete and an upload can be found. Commits are
rare, because each costs an fsync and a segment: every 4,000 files or 5 seconds. The 5
seconds are for slow files, which would otherwise hold back the ones before them.

The batch size of 64 files was measured: with 8, indexing takes 15 % longer; with 256,
the delays of the event loop grow (p99 5.0 ms instead of 4.3). One worker does up to 128
tasks, since starting a second takes longer than it saves. Workers end after a minute
without work: each needs 90 MB.

A failure never loses a task. Whatever storage or workers raise, all tasks since the
last commit go back to the front of the queue and are tried again after a pause, first 1
second, at most 60. Writing a file twice is harmless. This rule covers a full disk, a
damaged index and workers that cannot start; the status shows the reason meanwhile.

What breaks if it is changed: without `unflushed` a failed commit loses files until the
next comparison with the disk. If `_jobs` took all tasks at once instead of lazily,
dropping queued tasks would come too late, and memory would hold all uploads.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from byok.core.errors import DiskFull
from byok.search.index.files.scan import WHOLE, is_below
from byok.search.index.store.chunk_index import explain_failure
from byok.search.index.types import IndexTask, ParseJob, ParseOutcome, WorkspaceTask

_log = logging.getLogger(__name__)
_BATCH_FILES = 64
_FLUSH_FILES = 4000
_FLUSH_SECONDS = 5.0
_ONE_WORKER_FILES = 128  # up to this number one worker is enough
_FIRST_PAUSE, _MAX_PAUSE = 1.0, 60.0  # seconds before a retry


class Workers(Protocol):
    """Prepares files for the index (implemented by `worker_pool.Pool`)."""

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        """Yield an outcome for each job, in any order."""

    def close(self) -> None:
        """End the processes."""


class Writer(Protocol):
    """Stores prepared files (implemented by `Store`); every call blocks."""

    def put(self, outcomes: Sequence[tuple[IndexTask, ParseOutcome]]) -> None:
        """Write one batch."""

    def flush(self) -> None:
        """Make all written files searchable."""

    def parser_crashers(self) -> frozenset[bytes]:
        """Return the names of file versions that crashed the parser in this run."""


class Indexer:
    """Processes indexing tasks until closed; failed tasks are retried after a pause."""

    def __init__(
        self,
        workers: Callable[[int], Workers],
        writer: Writer,
        content_of: Callable[[int], bytes | None],
        *,
        size: int = 2,
        idle: float = 60.0,
        first_pause: float = _FIRST_PAUSE,
        flush_seconds: float = _FLUSH_SECONDS,
        on_flush: Callable[[], None] = lambda: None,
    ) -> None:
        """Start the thread; `content_of` returns the content of a blob by its id.

        Workers end after `idle` seconds without tasks.
        """
        self._make_workers = workers
        self._writer = writer
        self._content_of = content_of
        self._size = size
        self._idle = idle
        self._first_pause = first_pause
        self._flush_seconds = flush_seconds
        self._on_flush = on_flush
        self._waiting: deque[IndexTask] = deque()
        self._change = threading.Condition()
        self._closing = False
        self._open: Counter[int | None] = Counter()  # None: uploads
        self._workers: Workers | None = None
        self._workers_size = 0
        self.error = ""
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._thread.start()

    def put(self, tasks: Iterable[IndexTask], *, first: bool = False) -> None:
        """Queue tasks; with `first` they go before all others."""
        new = list(tasks)
        with self._change:
            if first:
                self._waiting.extendleft(reversed(new))
            else:
                self._waiting.extend(new)
            self._open.update(map(_workspace_of, new))
            self._change.notify()

    def drop(
        self, workspace_id: int | None, tops: Collection[str] = WHOLE
    ) -> list[IndexTask]:
        """Drop and return a workspace's queued tasks at and below `tops`.

        The workspace None stands for uploads. Tasks that workers have go on.
        """
        dropped: list[IndexTask] = []
        remaining: deque[IndexTask] = deque()
        with self._change:
            for task in self._waiting:
                is_of_workspace = _workspace_of(task) == workspace_id
                drops = is_of_workspace and is_below(task.path, tops)
                (dropped if drops else remaining).append(task)
            self._waiting = remaining
            self._open[workspace_id] -= len(dropped)
        return dropped

    @property
    def open_tasks(self) -> int:
        """The number of tasks that are not searchable yet."""
        with self._change:
            return self._open.total()

    def open_of(self, workspace_id: int) -> int:
        """Return how many tasks of a workspace are not searchable yet."""
        return self._open[workspace_id]

    def close(self) -> None:
        """Stop after the current batch; the next start finds the remaining files."""
        with self._change:
            self._closing = True
            self._change.notify()
        self._thread.join()

    def _run(self) -> None:
        pause = self._first_pause
        while self._wait():
            try:
                self._work()
            except Exception as error:
                # Whatever storage or workers raised: the daemon goes on, the status
                # shows the error, and the tasks, which stay open, are tried again.
                self._report_failure(error, pause)
                self._end_workers()
                with self._change:
                    self._change.wait_for(lambda: self._closing, pause)
                pause = min(2 * pause, _MAX_PAUSE)
            else:
                self.error = ""
                pause = self._first_pause
        self._end_workers()

    def _report_failure(self, error: Exception, pause: float) -> None:
        failure = explain_failure(error)
        self.error = failure.sentence[:300]
        traced = None if isinstance(failure, DiskFull) else error  # known: no traceback
        _log.error(
            "indexing failed, retrying in %.0f s: %s",
            pause,
            self.error,
            exc_info=traced,
        )

    def _wait(self) -> bool:
        """Wait for tasks, and end idle workers; return False if closing."""
        with self._change:
            while not self._closing and not self._waiting:
                if not self._change.wait(self._idle if self._workers else None):
                    self._end_workers()
            return not self._closing

    def _end_workers(self) -> None:
        if self._workers is not None:
            self._workers.close()
            self._workers = None

    def _work(self) -> None:
        """Prepare and write files until no task waits, then make them searchable."""
        taken: dict[int, IndexTask] = {}
        unflushed: list[IndexTask] = []
        batch: list[tuple[IndexTask, ParseOutcome]] = []
        flushed = time.monotonic()
        jobs = self._jobs(taken)
        try:
            for outcome in self._ready_workers().prepare(jobs):
                task = taken.pop(outcome.key)
                batch.append((task, outcome))
                unflushed.append(task)
                late = time.monotonic() - flushed > self._flush_seconds
                due = late or len(unflushed) >= _FLUSH_FILES
                if due or len(batch) >= _BATCH_FILES:
                    self._writer.put(batch)
                    batch = []
                if due:
                    self._flush(unflushed)
                    flushed = time.monotonic()
                if self._closing:
                    break
            if batch:
                self._writer.put(batch)
            self._flush(unflushed)
        except BaseException:
            with self._change:
                self._waiting.extendleft([*taken.values(), *unflushed])
            raise

    def _flush(self, unflushed: list[IndexTask]) -> None:
        self._writer.flush()
        with self._change:
            self._open.subtract(map(_workspace_of, unflushed))
        unflushed.clear()
        self._on_flush()

    def _ready_workers(self) -> Workers:
        size = 1 if len(self._waiting) <= _ONE_WORKER_FILES else self._size
        if self._workers is not None and self._workers_size < size:
            self._end_workers()
        if self._workers is None:
            self._workers = self._make_workers(size)
            self._workers_size = size
        return self._workers

    def _jobs(self, taken: dict[int, IndexTask]) -> Iterator[ParseJob]:
        key = 0
        parser_crashers = self._writer.parser_crashers()
        while True:
            with self._change:
                if not self._waiting or self._closing:
                    return
                task = self._waiting.popleft()
            key += 1
            job = self._job(key, task, parser_crashers)
            if job is None:
                with self._change:
                    self._open[_workspace_of(task)] -= 1
            else:
                taken[key] = task
                yield job

    def _job(
        self, key: int, task: IndexTask, parser_crashers: frozenset[bytes]
    ) -> ParseJob | None:
        """Return the job of a task, or None if the content of its blob is gone."""
        if isinstance(task, WorkspaceTask):
            return ParseJob(
                key,
                task.path,
                root=task.root,
                known=task.known,
                parser_crashers=parser_crashers,
            )
        content = self._content_of(task.blob_id)
        if content is None:
            return None
        return ParseJob(
            key, task.path, content=content, parser_crashers=parser_crashers
        )


def _workspace_of(task: IndexTask) -> int | None:
    return task.workspace_id if isinstance(task, WorkspaceTask) else None
