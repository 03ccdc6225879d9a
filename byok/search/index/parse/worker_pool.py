"""A pool of parser processes that can be killed while they work.

A parser may hang or crash. The heartbeat of each worker names the file it works on. A
worker that dies is replaced, and its file is prepared again, alone
(docs/reference/security.md, B76, B77).

A file is indexed without definitions only if the parser failed with it: if the process
crashed, or used up the processor time allowed for a file. If something else ends a
process (the system, out of memory, or a person), that proves nothing about the file,
and neither does elapsed time: beside 40 busy processes, one of low priority may wait
minutes for a second of work. So such a file is tried with the parser a few times, and
a process is given up only if it neither answers nor computes for long.
"""

import contextlib
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.bounded import split_into_batches
from byok.core.escapes import escape
from byok.core.platform.process import speaks_of_memory
from byok.core.platform.programs import clean_environment
from byok.core.platform.search_path import without_working_folder
from byok.search.index.parse.worker import BEAT, READY, Beat, WorkerLimits
from byok.search.index.types import (
    Document,
    FileFacts,
    ParseJob,
    ParseOutcome,
    Prepared,
    SkipReason,
    Span,
)

_log = logging.getLogger(__name__)
_CODE = (
    "import sys; handle, beat, *path = sys.argv[1:]; "
    "sys.path += [entry for entry in path if entry not in sys.path]; "
    "from byok.search.index.parse.worker import main; main(int(handle), int(beat))"
)
_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
_END_SECONDS = 10.0  # until a killed process has ended, on a busy machine
_STDERR_BYTES = 300  # of the end of stderr that are read
BATCH_FILES = 64
BATCH_BYTES = 1024 * 1024
_MAX_REPLY_BYTES = 512 * 1024 * 1024
_POLL_SECONDS = 0.1
_START_ATTEMPTS = 3
_START_PAUSE = 0.05
_MAX_FILES = 2000  # of one process, which is replaced afterwards
_MAX_LOSSES = 3  # of processes that others ended, with the same file
_SLACK = 3  # times the limit of a parser is that of its process
_SILENT_SECONDS = 300.0  # in which a process neither answers nor computes
_PROGRESS_SECONDS = 0.01  # of processor time: a process that used more is computing
# Signals that end a process by its own fault. SIGPROF: its time is up (`worker.py`).
_CRASH_SIGNALS = frozenset(
    getattr(signal, name, None)
    for name in (
        "SIGSEGV",
        "SIGBUS",
        "SIGILL",
        "SIGFPE",
        "SIGABRT",
        "SIGSYS",
        "SIGPROF",
    )
)
_WINDOWS_CRASH_CODE = 0xC0000000  # this exit code and larger ones mean exceptions
# The only classes that a reply of a worker may name.
_OUTCOME_CLASSES = {
    (cls.__module__, cls.__name__): cls
    for cls in (ParseOutcome, FileFacts, Prepared, Document, Span, SkipReason)
}


class WorkerProcess:
    """A parser process, its connection, and the pipe of its heartbeats.

    Nothing in an indexed folder can influence the process. multiprocessing would put
    the current folder first in the search path, so a repository with a `pickle.py`
    would run code. Therefore the process is an isolated Python (`-I`), with byok's own
    search path behind the standard one. It does not get the environment, which may hold
    keys: parsers are third-party code, and other processes of the user can read the
    environment of a process.
    """

    def __init__(self, target: str, limits: WorkerLimits) -> None:
        """Start the process; `target` is its function, as `module:function`.

        Raises:
            OSError: the system cannot start another process.
        """
        with ExitStack() as ours:
            self.connection, theirs = map(ours.enter_context, Pipe())
            self.beat, beats = map(ours.enter_context, Pipe(duplex=False))
            handles = (theirs.fileno(), beats.fileno())
            entries = without_working_folder(sys.path)
            search_path = [entry for entry in entries if Path(entry).is_absolute()]
            self._stderr = ours.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [*_python(), "-c", _CODE, *map(str, handles), *search_path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,  # the log shows what grammars print
                cwd=Path(sys.executable).anchor,
                env=clean_environment(
                    {k: os.environ[k] for k in _LOCALE_VARIABLES if k in os.environ}
                ),
                **_inheritance_options(handles),
            )
            theirs.close()
            beats.close()
            ours.pop_all()
        self.last_words = ""
        with suppress(OSError):  # it ended at once, which its reader will notice
            self.connection.send((os.getpid(), target, limits))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, None while the process runs."""
        return self._process.returncode

    def end(self) -> None:
        """Kill the process; the last line of its stderr becomes `last_words`."""
        self.connection.close()
        self.beat.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # even killing did not end it
            self._process.wait(_END_SECONDS)
        if not self._stderr.closed:
            size = self._stderr.seek(0, os.SEEK_END)
            self._stderr.seek(max(0, size - _STDERR_BYTES))
            lines = self._stderr.read().decode("utf-8", "replace").split("\n")
            self.last_words = escape(
                next(filter(None, map(str.strip, reversed(lines))), "")
            )
            self._stderr.close()


def _python() -> list[str]:
    """Return an isolated Python, which decodes file names as this one does."""
    return [sys.executable, "-I", f"-Xutf8={sys.flags.utf8_mode}"]


def _inheritance_options(handles: tuple[int, ...]) -> dict[str, Any]:
    """Return the arguments of Popen that pass some handles, and no others."""
    if sys.platform != "win32":
        return {"pass_fds": handles}
    for handle in handles:
        os.set_handle_inheritable(handle, True)
    listed = {"handle_list": list(handles)}
    return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList=listed)}


class WorkersUnavailable(Exception):
    """No worker process can be started; some jobs have no outcome."""


Start = Callable[[str, WorkerLimits], WorkerProcess]


class _Worker(Struct, eq=False):
    """A worker and its progress.

    `last_active` is when it last answered, got a batch or computed. `batch` has the
    jobs to answer, `beat` is the last heartbeat of that batch. `answered` counts the
    jobs of the batch that were answered, `files` all jobs of the process. `computed` is
    its processor time in seconds when that was last read.
    """

    process: WorkerProcess
    last_active: float
    ready: bool = False
    beat: Beat | None = None
    computed: float = 0.0
    batch: list[ParseJob] = field(default_factory=list)
    answered: int = 0
    files: int = 0


class Pool(Struct, eq=False):
    """Parses files in `size` processes, which live until `close`. For one thread.

    `limit` is the processor time in seconds that the parser of one file may take,
    `memory` the bytes of a process, `silence` the seconds after which a process that
    neither answers nor computes is given up. Processes are started when needed.
    """

    size: int
    limit: float = 2.0
    nice: int = 10
    memory: int = 2**30
    silence: float = _SILENT_SECONDS
    target: str = "byok.search.index.parse.worker:run"
    start: Start = WorkerProcess
    _workers: list[_Worker] = []
    _queue: deque[list[ParseJob]] = field(default_factory=deque)
    _losses: Counter[int] = field(default_factory=Counter)  # by the key of a job
    _failures: int = 0
    _next_start: float = 0.0

    @property
    def _limits(self) -> WorkerLimits:
        return WorkerLimits(self.limit, _SLACK * self.limit, self.nice, self.memory)

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        """Yield each job's outcome as it comes, in any order; read jobs as needed.

        Blocks. An outcome is `plain` if the parser failed with its file. Closing the
        generator early ends the busy workers.

        Raises:
            WorkersUnavailable: no process can be started.
        """
        batches = split_into_batches(
            jobs,
            lambda job: len(job.content or b""),
            max_size=BATCH_BYTES,
            max_items=BATCH_FILES,
        )
        self._queue.clear()
        self._losses.clear()
        try:
            self._assign_batches(batches)
            while self._queue or self._busy_workers():
                outcomes = self._collect_outcomes()
                self._assign_batches(batches)  # workers go on while the caller writes
                yield from outcomes
        finally:
            for busy in self._busy_workers():
                self._end_worker(busy)

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    def close(self) -> None:
        """End all workers, even busy ones."""
        while self._workers:
            self._end_worker(self._workers[-1])

    def _busy_workers(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.batch]

    def _assign_batches(self, batches: Iterator[list[ParseJob]]) -> None:
        """Give each free worker a batch, and start workers for remaining batches."""
        for worker in list(self._workers):
            if worker.ready and not worker.batch and self._fill(batches, 1):
                self._send_batch(worker, self._queue.popleft())
        starting = sum(not worker.ready for worker in self._workers)
        while len(self._workers) < self.size and self._fill(batches, starting + 1):
            if time.monotonic() < self._next_start or not self._start_worker():
                break
            starting += 1
        if self._queue and not self._workers and self._failures >= _START_ATTEMPTS:
            self._failures = 0
            raise WorkersUnavailable("no process for parsing can be started")

    def _fill(self, batches: Iterator[list[ParseJob]], count: int) -> bool:
        while len(self._queue) < count:
            batch = next(batches, None)
            if batch is None:
                return False
            self._queue.append(batch)
        return True

    def _start_worker(self) -> bool:
        try:
            process = self.start(self.target, self._limits)
        except OSError:
            self._delay_next_start()
            return False
        self._workers.append(_Worker(process, time.monotonic()))
        return True

    def _delay_next_start(self) -> None:
        self._failures += 1
        pause = _START_PAUSE * 2 ** min(self._failures, 8)
        self._next_start = time.monotonic() + pause

    def _send_batch(self, worker: _Worker, batch: list[ParseJob]) -> None:
        _update_activity(worker)  # reads the last heartbeats of the previous batch
        worker.answered, worker.beat, worker.last_active = 0, None, time.monotonic()
        try:
            worker.process.connection.send(batch)
            worker.batch = batch
        except OSError:  # it ended meanwhile
            self._end_worker(worker)
            self._queue.appendleft(batch)

    def _collect_outcomes(self) -> list[ParseOutcome]:
        """Wait for outcomes for a moment; replace workers that are lost."""
        outcomes: list[ParseOutcome] = []
        by_connection = {worker.process.connection: worker for worker in self._workers}
        if not by_connection:
            time.sleep(_POLL_SECONDS)
        ready = wait(list(by_connection), _POLL_SECONDS) if by_connection else []
        for connection in ready:
            worker = by_connection[cast(Connection, connection)]
            try:
                outcomes += self._receive(worker)
            except (EOFError, OSError):
                outcomes += self._replace_worker(worker, "it ended")
            except UnreadableReply as error:
                cause = f"unreadable reply: {error}"
                outcomes += self._replace_worker(worker, cause, at_fault=True)
        for worker in list(self._workers):
            if worker.ready and not worker.batch:
                continue
            _update_activity(worker)
            if self._exceeded_its_limit(worker):
                cause = "a file took too much processor time"
                outcomes += self._replace_worker(worker, cause, at_fault=True)
            elif time.monotonic() - worker.last_active > self.silence:
                cause = "it neither answered nor computed"
                outcomes += self._replace_worker(worker, cause)
        return outcomes

    def _receive(self, worker: _Worker) -> list[ParseOutcome]:
        received = worker.process.connection.recv_bytes(_MAX_REPLY_BYTES)
        message = read_message(received)
        worker.last_active = time.monotonic()
        if message == READY and not worker.ready:
            worker.ready, self._failures = True, 0
            return []
        outcomes = read_outcomes(message, worker.batch)
        count = len(outcomes)
        del worker.batch[:count]
        worker.answered += count
        worker.files += count
        if not worker.batch and worker.files >= _MAX_FILES:
            self._end_worker(worker)
        return outcomes

    def _exceeded_its_limit(self, worker: _Worker) -> bool:
        """Tell whether a process goes on although its timer should have ended it.

        False on systems that do not report the processor time of a process.
        """
        if worker.beat is None or worker.beat.number < worker.answered:
            return False
        return worker.computed - worker.beat.computed > 2 * self._limits.process

    def _replace_worker(
        self, worker: _Worker, cause: str, *, at_fault: bool = False
    ) -> list[ParseOutcome]:
        """End a worker that was lost, and queue its batch for others.

        The worker failed by itself if `at_fault`, or if its exit code says so.
        """
        if not worker.ready:
            self._delay_next_start()
        _update_activity(worker)
        self._end_worker(worker)
        code, words = worker.process.returncode, worker.process.last_words
        _log.warning(
            *("parser process %d was lost: %s (%s)%s", worker.process.pid, cause),
            *(
                "killed" if code is None else f"exit code {code}",
                words and f": {words}",
            ),
        )
        batch = worker.batch
        if not batch:
            return []
        position = worker.beat.number - worker.answered if worker.beat else -1
        if not 0 <= position < len(batch):
            if len(batch) > 1:  # any of them may be the culprit
                self._queue.extendleft([job] for job in batch)
                return []
            position = 0
        culprit = batch.pop(position)
        if batch:
            self._queue.appendleft(batch)
        self._losses[culprit.key] += 1
        at_fault = at_fault or (_has_crashed(code) and not speaks_of_memory(words))
        if not (at_fault or self._losses[culprit.key] >= _MAX_LOSSES):
            self._queue.appendleft([culprit])
            return []
        if culprit.plain:
            reason = SkipReason.NOT_ACCESSIBLE
            return [ParseOutcome(culprit.key, None, reason, plain=True)]
        del self._losses[culprit.key]
        self._queue.appendleft([replace(culprit, plain=True)])
        return []

    def _end_worker(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.process.end()


class UnreadableReply(Exception):
    """The message of a worker is no reply to its jobs.

    A parser is native code that reads untrusted files, so its process is not trusted
    either: a message may name no class but those of an outcome.
    """


def read_message(received: bytes) -> object:
    """Unpickle the message of a worker.

    Raises:
        UnreadableReply: it is damaged, or names other classes.
    """
    try:
        return _Unpickler(BytesIO(received)).load()
    except Exception as error:  # a damaged pickle may raise anything
        raise UnreadableReply(type(error).__name__) from error


def read_outcomes(message: object, batch: Sequence[ParseJob]) -> list[ParseOutcome]:
    """Return the outcomes of the first jobs of a batch.

    Raises:
        UnreadableReply: the message does not answer them.
    """
    if not isinstance(message, list) or not 0 < len(message) <= len(batch):
        raise UnreadableReply("not a list of outcomes")
    for job, outcome in zip(batch, message, strict=False):
        if not isinstance(outcome, ParseOutcome) or outcome.key != job.key:
            raise UnreadableReply("an outcome of another job")
        if not isinstance(outcome.prepared, Prepared | None):
            raise UnreadableReply("not a prepared file")
    return message


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """Return a class that an outcome is made of; KeyError for any other."""
        return _OUTCOME_CLASSES[module, name]


def _update_activity(worker: _Worker) -> None:
    """Record a worker's last heartbeat, and its processor time.

    Other data in the pipe is ignored.
    """
    with contextlib.suppress(OSError, EOFError, struct.error):
        while worker.process.beat.poll():
            worker.beat = Beat(*BEAT.unpack(worker.process.beat.recv_bytes(BEAT.size)))
            worker.last_active = time.monotonic()
    used = _processor_seconds(worker.process.pid)
    if used is not None and used - worker.computed > _PROGRESS_SECONDS:
        worker.computed, worker.last_active = used, time.monotonic()


def _has_crashed(code: int | None) -> bool:
    """Tell whether a process with this exit code ended by its own fault."""
    if code is None:
        return False
    if sys.platform == "win32":
        return code >= _WINDOWS_CRASH_CODE
    return -code in _CRASH_SIGNALS


def _processor_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a process, or None if the system does not tell."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # Linux: CPUCLOCK_SCHED
    except (AttributeError, OSError, ValueError, OverflowError):
        return None
