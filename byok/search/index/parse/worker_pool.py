"""A pool of parser processes that can be killed while they work.

A parser may hang or crash. The heartbeat of each worker names the file it works on. A
worker that dies is replaced, and its file is prepared again, alone
(docs/reference/security.md, B76, B77).

A file goes without its definitions only if a parser failed with it: if the process
crashed, or used up the processor time that a file may have. Whoever else ends a process
(the system that is out of memory, a person) says nothing about the file, and neither
does the time on the wall: with 40 busy processes beside it, one that yields to them
waits minutes for a second of work. So such a file is tried with its parser a few times,
and only a process that for long neither answers nor computes is given up.
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
from typing import IO, Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from byok.core.escapes import escape
from byok.core.platform.memory import speaks_of_memory
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

# Starts a parser process that nothing in an indexed folder can influence.
#
# multiprocessing would put the current folder first in the search path, so a repository
# with a `pickle.py` would run code. Therefore the process is an isolated Python (`-I`),
# with byok's own search path behind the standard one. It does not get the environment,
# which may hold keys: parsers are third-party code, and other processes of the user can
# read the environment of a process.


_END_SECONDS = 10.0  # for a process that was killed, on a busy machine
_LONGEST_LINE = 300
_START = (
    "import sys; handle, beat, *path = sys.argv[1:]; "
    "sys.path += [entry for entry in path if entry not in sys.path]; "
    "from byok.search.index.parse.worker import main; main(int(handle), int(beat))"
)


class WorkerProcess:
    """One process, the pipe to it, and the one that its heartbeat comes from."""

    def __init__(self, target: str, limits: WorkerLimits) -> None:
        """Start it; `target` names the function that it runs.

        Raises:
            OSError: the system has no room for another process.
        """
        with ExitStack() as ours:
            self.connection, theirs = map(ours.enter_context, Pipe())
            self.beat, beats = map(ours.enter_context, Pipe(duplex=False))
            handles = (theirs.fileno(), beats.fileno())
            self._stderr = ours.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [*_python(), "-c", _START, *map(str, handles), *_search_path()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,  # what grammars print belongs into the log
                cwd=Path(sys.executable).anchor,
                env=clean_environment(_locale()),
                **_inheriting(handles),
            )
            theirs.close()
            beats.close()
            ours.pop_all()
        self.last_words = ""
        with suppress(OSError):  # it ended at once, as who listens will hear
            self.connection.send((os.getpid(), target, limits))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, None while it lives."""
        return self._process.returncode

    def end(self) -> None:
        """End it, whatever it is doing; its `last_words` are those of its stderr."""
        self.connection.close()
        self.beat.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # not even that ended it
            self._process.wait(_END_SECONDS)
        if not self._stderr.closed:
            self.last_words = _last_line(self._stderr)
            self._stderr.close()


def _last_line(printed: IO[bytes]) -> str:
    """Return the last line of a file that is not blank, escaped and cut; else ""."""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _LONGEST_LINE))
    lines = printed.read().decode("utf-8", "replace").split("\n")
    return escape(next(filter(None, map(str.strip, reversed(lines))), ""))


def _python() -> list[str]:
    """Return an isolated Python, which reads the names of files as this one does."""
    return [sys.executable, "-I", f"-Xutf8={sys.flags.utf8_mode}"]


def _locale() -> dict[str, str]:
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    return {name: os.environ[name] for name in names if name in os.environ}


def _search_path() -> list[str]:
    return [p for p in without_working_folder(sys.path) if Path(p).is_absolute()]


def _inheriting(handles: tuple[int, ...]) -> dict[str, Any]:
    """Return what lets a new process have some handles, and nothing else."""
    if sys.platform != "win32":
        return {"pass_fds": handles}
    for handle in handles:
        os.set_handle_inheritable(handle, True)
    listed = {"handle_list": list(handles)}
    return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList=listed)}


# Reading what a worker process sends.
#
# A parser is native code that reads files of strangers, so what its process sends is
# not trusted: it may name no class but those of an outcome, and must answer the jobs
# that it got.


_CLASSES = {
    (made.__module__, made.__name__): made
    for made in (ParseOutcome, FileFacts, Prepared, Document, Span, SkipReason)
}


class UnreadableReply(Exception):
    """What a worker sent is no reply to the jobs it got."""


def read_message(received: bytes) -> object:
    """Return what was sent.

    Raises:
        UnreadableReply: it is damaged, or made of other classes.
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
        """Return one of the classes that an outcome is made of."""
        return _CLASSES[module, name]


_log = logging.getLogger(__name__)
BATCH_FILES = 64
BATCH_BYTES = 1024 * 1024
_REPLY_BYTES = 512 * 1024 * 1024
_POLL_SECONDS = 0.1
_START_ATTEMPTS = 3
_START_PAUSE = 0.05
_RETIRES_AFTER = 2000  # files
_TRIES = 3  # of a file whose process was ended by others
_HARD = 3  # times the limit of a parser is that of its process
_SILENT_SECONDS = 300.0  # in which a process neither answers nor computes
_PROGRESS = 0.01  # seconds of processor time
# How a process ends by its own fault; by SIGPROF if its time is used up (`worker.py`).
_CRASHES = frozenset(
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
_WINDOWS_CRASH = 0xC0000000  # exit codes from here on are those of exceptions

Start = Callable[[str, WorkerLimits], WorkerProcess]


class WorkersUnavailable(Exception):
    """No worker process can be started; jobs without an outcome remain to be done."""


class _Worker(Struct, eq=False):
    """`active` is when it last answered, got something or computed.

    `batch` is what it has to answer, `beat` its last heartbeat of it. `answered` counts
    the jobs that it answered of its batch, `files` those of its life. `computed` are
    the seconds of processor time that it had used when it was last looked at.
    """

    process: WorkerProcess
    active: float
    ready: bool = False
    beat: Beat | None = None
    computed: float = 0.0
    batch: list[ParseJob] = field(default_factory=list)
    answered: int = 0
    files: int = 0


class Pool(Struct, eq=False):
    """Parses files in `size` processes, which live until `close`. For one thread.

    `limit` are the seconds of processor time that the parser of one file may take,
    `memory` the bytes of a process, `silence` the seconds until one is given up that
    neither answers nor computes. No process is started yet.
    """

    size: int
    limit: float = 2.0
    nice: int = 10
    memory: int = 2**30
    silence: float = _SILENT_SECONDS
    target: str = "byok.search.index.parse.worker:run"
    start: Start = WorkerProcess
    _workers: list[_Worker] = []
    _todo: deque[list[ParseJob]] = field(default_factory=deque)
    _losses: Counter[int] = field(default_factory=Counter)  # by the key of a job
    _failures: int = 0
    _next_start: float = 0.0

    @property
    def _limits(self) -> WorkerLimits:
        return WorkerLimits(self.limit, _HARD * self.limit, self.nice, self.memory)

    def prepare(self, jobs: Iterable[ParseJob]) -> Iterator[ParseOutcome]:
        """Yield each job's outcome as it comes, in any order; take jobs as needed.

        Blocks. An outcome is `plain` if its file had to be repeated. A caller that
        closes the generator early ends the workers that were busy.
        Raises WorkersUnavailable.
        """
        batches = _batches(jobs)
        self._todo.clear()
        self._losses.clear()
        try:
            self._hand_out(batches)
            while self._todo or self._busy():
                outcomes = self._listen()
                self._hand_out(batches)  # they work while the caller writes
                yield from outcomes
        finally:
            for busy in self._busy():
                self._end(busy)

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [one.process.pid for one in self._workers]

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        while self._workers:
            self._end(self._workers[-1])

    def _busy(self) -> list[_Worker]:
        return [one for one in self._workers if one.batch]

    def _hand_out(self, batches: Iterator[list[ParseJob]]) -> None:
        """Give each free worker a batch, and start workers for those that are left."""
        for one in list(self._workers):
            if one.ready and not one.batch and self._fill(batches, 1):
                self._give(one, self._todo.popleft())
        starting = sum(not one.ready for one in self._workers)
        while len(self._workers) < self.size and self._fill(batches, starting + 1):
            if time.monotonic() < self._next_start or not self._start_worker():
                break
            starting += 1
        if self._todo and not self._workers and self._failures >= _START_ATTEMPTS:
            self._failures = 0
            raise WorkersUnavailable("no process for parsing can be started")

    def _fill(self, batches: Iterator[list[ParseJob]], count: int) -> bool:
        while len(self._todo) < count:
            batch = next(batches, None)
            if batch is None:
                return False
            self._todo.append(batch)
        return True

    def _start_worker(self) -> bool:
        try:
            process = self.start(self.target, self._limits)
        except OSError:
            self._note_failed_start()
            return False
        self._workers.append(_Worker(process, time.monotonic()))
        return True

    def _note_failed_start(self) -> None:
        self._failures += 1
        pause = _START_PAUSE * 2 ** min(self._failures, 8)
        self._next_start = time.monotonic() + pause

    def _give(self, one: _Worker, batch: list[ParseJob]) -> None:
        _observe(one)  # the last of the batch before
        one.answered, one.beat, one.active = 0, None, time.monotonic()
        try:
            one.process.connection.send(batch)
            one.batch = batch
        except OSError:  # it ended since the last look
            self._end(one)
            self._todo.appendleft(batch)

    def _listen(self) -> list[ParseOutcome]:
        """Wait a little and return what came."""
        outcomes: list[ParseOutcome] = []
        by_connection = {one.process.connection: one for one in self._workers}
        if not by_connection:
            time.sleep(_POLL_SECONDS)
        heard = wait(list(by_connection), _POLL_SECONDS) if by_connection else []
        for connection in heard:
            one = by_connection[cast(Connection, connection)]
            try:
                outcomes += self._receive(one)
            except (EOFError, OSError):
                outcomes += self._replace_worker(one, "it ended")
            except UnreadableReply as error:
                why = f"unreadable reply: {error}"
                outcomes += self._replace_worker(one, why, at_fault=True)
        for one in list(self._workers):
            if one.ready and not one.batch:
                continue
            _observe(one)
            if self._has_used_up_its_time(one):
                why = "a file took too much processor time"
                outcomes += self._replace_worker(one, why, at_fault=True)
            elif time.monotonic() - one.active > self.silence:
                why = "it neither answered nor computed"
                outcomes += self._replace_worker(one, why)
        return outcomes

    def _receive(self, one: _Worker) -> list[ParseOutcome]:
        received = one.process.connection.recv_bytes(_REPLY_BYTES)
        message = read_message(received)
        one.active = time.monotonic()
        if message == READY and not one.ready:
            one.ready, self._failures = True, 0
            return []
        outcomes = read_outcomes(message, one.batch)
        count = len(outcomes)
        del one.batch[:count]
        one.answered += count
        one.files += count
        if not one.batch and one.files >= _RETIRES_AFTER:
            self._end(one)
        return outcomes

    def _has_used_up_its_time(self, one: _Worker) -> bool:
        """Tell whether a process goes on although its timer should have ended it.

        Only where the system tells what a process has used.
        """
        if one.beat is None or one.beat.number < one.answered:
            return False
        return one.computed - one.beat.computed > 2 * self._limits.process

    def _replace_worker(
        self, one: _Worker, why: str, *, at_fault: bool = False
    ) -> list[ParseOutcome]:
        """End a worker that was lost, and queue its batch for others.

        It may be `at_fault`, or its exit code say so.
        """
        if not one.ready:
            self._note_failed_start()
        _observe(one)
        self._end(one)
        code, said = one.process.returncode, one.process.last_words
        _log.warning(
            *("parser process %d was lost: %s (%s)%s", one.process.pid, why),
            *("killed" if code is None else f"exit code {code}", said and f": {said}"),
        )
        batch = one.batch
        if not batch:
            return []
        at = one.beat.number - one.answered if one.beat else -1
        if not 0 <= at < len(batch):
            if len(batch) > 1:  # one of them it must have been
                self._todo.extendleft([job] for job in batch)
                return []
            at = 0
        culprit = batch.pop(at)
        if batch:
            self._todo.appendleft(batch)
        self._losses[culprit.key] += 1
        at_fault = at_fault or (_has_crashed(code) and not speaks_of_memory(said))
        if not (at_fault or self._losses[culprit.key] >= _TRIES):
            self._todo.appendleft([culprit])
            return []
        if culprit.plain:
            reason = SkipReason.NOT_ACCESSIBLE
            return [ParseOutcome(culprit.key, None, reason, plain=True)]
        del self._losses[culprit.key]
        self._todo.appendleft([replace(culprit, plain=True)])
        return []

    def _end(self, one: _Worker) -> None:
        self._workers.remove(one)
        one.process.end()


def _batches(jobs: Iterable[ParseJob]) -> Iterator[list[ParseJob]]:
    batch: list[ParseJob] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += len(job.content or b"")
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _observe(one: _Worker) -> None:
    """Note a worker's last heartbeat, and how much it has computed.

    Anything else in the pipe is ignored.
    """
    with contextlib.suppress(OSError, EOFError, struct.error):
        while one.process.beat.poll():
            one.beat = Beat(*BEAT.unpack(one.process.beat.recv_bytes(BEAT.size)))
            one.active = time.monotonic()
    used = _processor_seconds(one.process.pid)
    if used is not None and used - one.computed > _PROGRESS:
        one.computed, one.active = used, time.monotonic()


def _has_crashed(code: int | None) -> bool:
    """Tell whether a process with this exit code ended by its own fault."""
    if code is None:
        return False
    if sys.platform == "win32":
        return code >= _WINDOWS_CRASH
    return -code in _CRASHES


def _processor_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a process; None if the system cannot say."""
    try:
        return time.clock_gettime((~pid << 3) | 2)  # Linux: CPUCLOCK_SCHED
    except (AttributeError, OSError, ValueError, OverflowError):
        return None
