"""The indexing thread: tasks wait here, workers prepare them, a writer keeps them."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from byok.index.files.scan import WHOLE, is_below
from byok.index.store.index_errors import reason
from byok.index.types import IndexTask, Outcome, ParseJob, WorkspaceTask

_log = logging.getLogger(__name__)
_BATCH = 64
_FLUSH_FILES = 4000
_FLUSH_SECONDS = 5.0
_FEW = 128  # one worker does these
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Workers(Protocol):
    """What prepares jobs (`workers.Pool`)."""

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[Outcome]:
        """Yield an outcome for each job, in any order."""

    def close(self) -> None:
        """End the processes."""


class Writer(Protocol):
    """What keeps the outcomes; every call blocks until it is done."""

    def put(self, outcomes: Sequence[tuple[IndexTask, Outcome]]) -> None:
        """Write one batch."""

    def flush(self) -> None:
        """Make what was written searchable."""

    def content(self, blob_id: int) -> bytes | None:
        """Return the content of an upload."""

    def parser_crashers(self) -> frozenset[bytes]:
        """Return the file versions that parsers died of."""


class Indexer:
    """Processes indexing tasks until closed; failed tasks are retried after a pause."""

    def __init__(
        self,
        workers: Callable[[int], Workers],
        writer: Writer,
        *,
        size: int = 2,
        idle: float = 60.0,
        first_pause: float = _FIRST_PAUSE,
        flush_seconds: float = _FLUSH_SECONDS,
        content: Callable[[int], bytes | None] | None = None,
        on_flush: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin to wait for tasks; `content` gives that of a blob by its id."""
        self._make_workers = workers
        self._writer = writer
        self._content = content or writer.content
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
        """Queue tasks, `first` before all others."""
        new = list(tasks)
        with self._change:
            if first:
                self._waiting.extendleft(reversed(new))
            else:
                self._waiting.extend(new)
            self._open.update(map(_workspace_of, new))
            self._change.notify()

    def drop(
        self, workspace_id: int, tops: Collection[str] = WHOLE
    ) -> list[WorkspaceTask]:
        """Forget waiting tasks below some folders; those that workers have go on."""
        gone: list[WorkspaceTask] = []
        kept: deque[IndexTask] = deque()
        with self._change:
            for task in self._waiting:
                if (
                    isinstance(task, WorkspaceTask)
                    and task.workspace_id == workspace_id
                    and is_below(task.path, tops)
                ):
                    gone.append(task)
                else:
                    kept.append(task)
            self._waiting = kept
            self._open[workspace_id] -= len(gone)
        return gone

    def drop_uploads(self) -> None:
        """Forget all waiting uploads."""
        with self._change:
            kept: deque[IndexTask] = deque(
                task for task in self._waiting if isinstance(task, WorkspaceTask)
            )
            self._open[None] -= len(self._waiting) - len(kept)
            self._waiting = kept

    @property
    def open_tasks(self) -> int:
        """How many tasks are not searchable yet."""
        with self._change:
            return self._open.total()

    def open_of(self, workspace_id: int) -> int:
        """Return how many tasks of a workspace are not searchable yet."""
        return self._open[workspace_id]

    def close(self) -> None:
        """Stop after the batch at hand; what is left is found at the next start."""
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
                # Whatever storage or workers threw: the tasks stay open, the daemon
                # lives, the status says it, and the same is tried again.
                self.error = reason(error)[:300]
                _log.exception("indexing failed; it is tried again in %.0f s", pause)
                self._end_workers()
                with self._change:
                    self._change.wait_for(lambda: self._closing, pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self.error = ""
                pause = self._first_pause
        self._end_workers()

    def _wait(self) -> bool:
        """Wait for tasks; let the workers go when nothing came for long."""
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
        """Prepare and write until nothing waits, then make it searchable."""
        taken: dict[int, IndexTask] = {}
        unflushed: list[IndexTask] = []
        batch: list[tuple[IndexTask, Outcome]] = []
        flushed = time.monotonic()
        jobs = self._jobs(taken)
        try:
            for outcome in self._ready_workers().prepare(jobs):
                task = taken.pop(outcome.job.key)
                batch.append((task, outcome))
                unflushed.append(task)
                late = time.monotonic() - flushed > self._flush_seconds
                due = late or len(unflushed) >= _FLUSH_FILES
                if due or len(batch) >= _BATCH:
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
        size = 1 if len(self._waiting) <= _FEW else self._size
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
        """Return what workers need for a task; None if there is no content for it."""
        if isinstance(task, WorkspaceTask):
            return ParseJob(
                key,
                task.path,
                root=task.root,
                known=task.known,
                parser_crashers=parser_crashers,
            )
        content = self._content(task.blob_id)
        if content is None:
            return None
        return ParseJob(
            key, task.path, content=content, parser_crashers=parser_crashers
        )


def _workspace_of(task: IndexTask) -> int | None:
    return task.workspace_id if isinstance(task, WorkspaceTask) else None
