"""The parser process: receives files and sends back chunks until the pipe closes.

A file may make it hang or crash. So it sends heartbeats to the pool. A parser that
computes for too long is cancelled. If it does not react, a timer of the system ends the
process, even if the daemon, and with it the pool, is gone. Both limits count processor
time: on a busy machine a file may take long and is still completed.
"""

import contextlib
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from byok.core.bounded import split_into_batches
from byok.core.platform.process import end_with, keep_secrets_in_memory
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.types import (
    MAX_BYTES,
    ParseJob,
    ParseOutcome,
    Prepared,
    SkipReason,
    blob_name,
)

READY = "ready"
BEAT = struct.Struct("=qd")  # a `Beat` on the wire
_REPLY_BYTES = 1024 * 1024  # of files whose outcomes are sent together

# Splits a file version into chunks: `prepare.prepare`.
Prepare: TypeAlias = Callable[..., Prepared]


class Beat(NamedTuple):
    """Heartbeat at the start of a file: its number in the batch, CPU seconds so far.

    Heartbeats have their own pipe, which the pool reads only when a file takes long.
    """

    number: int
    computed: float


class WorkerLimits(Struct, frozen=True):
    """Limits of a worker; `memory` in bytes.

    After `parser` seconds of processor time for one file its parser is cancelled, after
    `process` seconds the process ends (0: never).
    """

    parser: float = 2.0
    process: float = 6.0
    nice: int = 10
    memory: int = 2**30


def main(handle: int, beat_handle: int) -> None:
    """Run a worker process.

    The first message has the pid of the pool, the worker's function as
    `module:function`, and its limits.
    """
    windows = sys.platform == "win32"
    kind = getattr(connections, "PipeConnection" if windows else "Connection")
    connection, beat = kind(handle), kind(beat_handle, readable=False)
    try:
        parent, target, limits = connection.recv()
    except (EOFError, OSError):  # the pool is gone
        return
    _limit_process(parent, limits)
    module, _, name = target.partition(":")
    getattr(import_module(module), name)(connection, beat, limits)


def run(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Answer batches of jobs with the real parser, which the pool's process lacks."""
    from byok.search.index.parse.prepare import prepare

    work(connection, beat, limits, prepare)


def work(
    connection: Connection, beat: Connection, limits: WorkerLimits, prepare: Prepare
) -> None:
    """Answer batches of jobs with lists of outcomes, until the pipe closes."""
    with contextlib.suppress(EOFError, OSError):  # the pool is gone
        connection.send(READY)
        while True:
            outcomes = _outcomes(connection.recv(), beat, limits, prepare)
            for reply in split_into_batches(
                outcomes, itemgetter(1), max_size=_REPLY_BYTES
            ):
                connection.send([outcome for outcome, _ in reply])


def _limit_process(parent: int, limits: WorkerLimits) -> None:
    """End with the parent, keep the memory private, and lower priority and memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_secrets_in_memory()
    end_with(parent)
    if hasattr(os, "nice"):
        os.nice(limits.nice)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))


def _outcomes(
    jobs: list[ParseJob], beat: Connection, limits: WorkerLimits, prepare: Prepare
) -> Iterator[tuple[ParseOutcome, int]]:
    """Yield the outcome of each job, and how many bytes were read for it."""
    with ExitStack() as opened:
        folders: dict[str, Folder] = {}

        def folder_of(root: str) -> Folder:
            if root not in folders:
                folders[root] = opened.enter_context(Folder(Path(root)))
            return folders[root]

        for number, job in enumerate(jobs):
            beat.send_bytes(BEAT.pack(number, time.process_time()))
            _set_timer(limits.process)
            try:
                result = _run_job(
                    job,
                    folder_of,
                    partial(prepare, deadline=time.process_time() + limits.parser),
                )
            finally:
                _set_timer(0)
            yield result


def _set_timer(seconds: float) -> None:
    """End this process after some seconds of processor time; with 0 never."""
    # The signal has no handler, so the system ends the process even inside C code.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _run_job(
    job: ParseJob, folder: Callable[[str], Folder], prepare: Callable[..., Prepared]
) -> tuple[ParseOutcome, int]:
    content, facts = job.content, None
    start = read_end = time.perf_counter()
    if content is None:
        try:
            content, facts = folder(job.root).read(job.path, MAX_BYTES)
        except Unreadable as exc:
            return ParseOutcome(job.key, None, exc.reason, None, job.plain), 0
        read_end = time.perf_counter()
    name = blob_name(job.path, content) if job.known or job.parser_crashers else b""
    if job.known and name == job.known:
        seconds = read_end - start
        return ParseOutcome(job.key, None, None, facts, job.plain, seconds), len(
            content
        )
    plain = job.plain or name in job.parser_crashers
    prepared, plain = _prepare_safely(job.path, content, prepare, plain=plain)
    reason = SkipReason.NOT_ACCESSIBLE if prepared is None else prepared.reason
    times = (read_end - start, time.perf_counter() - read_end)
    return ParseOutcome(job.key, prepared, reason, facts, plain, *times), len(content)


def _prepare_safely(
    path: str, content: bytes, prepare: Callable[..., Prepared], *, plain: bool
) -> tuple[Prepared | None, bool]:
    """Prepare a file; if that fails or is cancelled, once more without the parser.

    Return the result, None if that fails too, and whether no parser was used.
    """
    for is_plain in dict.fromkeys([plain, True]):
        with contextlib.suppress(Exception):
            return prepare(path, content, plain=is_plain), is_plain
    return None, True
