"""The indexing thread: tasks wait here, workers prepare them, a writer keeps them."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from byok.index.files.scan import WHOLE, is_below
from byok.index.store.index_errors import reason
from byok.index.types import Outcome, ParseJob

_log = logging.getLogger(__name__)
_BATCH = 64
_FLUSH_FILES = 4000
_FLUSH_SECONDS = 5.0
_FEW = 128  # one worker does these
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0


class Task(NamedTuple):
    """A file version to index: of a workspace by its path, or a blob by its id."""

    workspace_id: int
    path: str
    root: str = ""
    blob_id: int = 0
    known: bytes = b""


class Workers(Protocol):
    """What prepares jobs (`workers.Pool`)."""

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[Outcome]:
        """Yield an outcome for each job, in any order."""

    def close(self) -> None:
        """End the processes."""


class Writer(Protocol):
    """What keeps the outcomes; every call blocks until it is done."""

    def put(self, outcomes: Sequence[tuple[Outcome, int]]) -> None:
        """Write one batch."""

    def flush(self) -> None:
        """Make what was written searchable."""

    def content(self, blob_id: int) -> bytes | None:
        """Return the content of an upload."""

    def parser_crashers(self) -> frozenset[bytes]:
        """Return the file versions that parsers died of."""


class Indexer:
    """Works through tasks until closed; failures are repeated after a pause."""

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
        self._waiting: deque[Task] = deque()
        self._change = threading.Condition()
        self._closing = False
        self._open: Counter[int] = Counter()
        self._workers: Workers | None = None
        self._workers_size = 0
        self.error = ""
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._thread.start()

    def put(self, tasks: Iterable[Task], *, first: bool = False) -> None:
        """Queue tasks, `first` before all others."""
        new = list(tasks)
        with self._change:
            if first:
                self._waiting.extendleft(reversed(new))
            else:
                self._waiting.extend(new)
            self._open.update(task.workspace_id for task in new)
            self._change.notify()

    def drop(self, workspace_id: int, tops: Collection[str] = WHOLE) -> list[Task]:
        """Forget the waiting tasks of some folders; those that workers have go on."""
        gone: list[Task] = []
        kept: deque[Task] = deque()
        with self._change:
            for task in self._waiting:
                ours = task.workspace_id == workspace_id and is_below(task.path, tops)
                (gone if ours else kept).append(task)
            self._waiting = kept
            self._open[workspace_id] -= len(gone)
        return gone

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
        taken: dict[int, Task] = {}
        unflushed: list[Task] = []
        batch: list[tuple[Outcome, int]] = []
        flushed = time.monotonic()
        jobs = self._jobs(taken)
        try:
            for outcome in self._ready_workers().prepare(jobs):
                task = taken.pop(outcome.job.key)
                own = (
                    outcome.job
                    if task.workspace_id
                    else _with_blob_id(outcome.job, task)
                )
                batch.append((_with_job(outcome, own), task.workspace_id))
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

    def _flush(self, unflushed: list[Task]) -> None:
        self._writer.flush()
        with self._change:
            self._open.subtract(task.workspace_id for task in unflushed)
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

    def _jobs(self, taken: dict[int, Task]) -> Iterator[ParseJob]:
        key = 0
        parser_crashers = self._writer.parser_crashers()
        while True:
            with self._change:
                if not self._waiting or self._closing:
                    return
                task = self._waiting.popleft()
            key += 1
            if task.workspace_id:
                taken[key] = task
                yield ParseJob(
                    key,
                    task.path,
                    root=task.root,
                    known=task.known,
                    parser_crashers=parser_crashers,
                )
                continue
            content = self._content(task.blob_id)
            if content is None:
                with self._change:
                    self._open[0] -= 1
                continue
            taken[key] = task
            yield ParseJob(
                key, task.path, content=content, parser_crashers=parser_crashers
            )


def _with_blob_id(job: ParseJob, task: Task) -> ParseJob:
    """Let the job of an upload carry the id of its blob."""
    return ParseJob(task.blob_id, job.path, plain=job.plain)


def _with_job(outcome: Outcome, job: ParseJob) -> Outcome:
    return replace(outcome, job=job)
