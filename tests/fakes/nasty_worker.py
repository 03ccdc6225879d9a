"""Workers that misbehave at files with certain names, as parsers do at bad input."""

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from byok.index.parse.worker import WorkerLimits, WorkerReply, work
from byok.index.types import Prepared

_NAME = bytes(32)


def prepare(path: str, content: bytes, *, plain: bool) -> Prepared:
    """Do what the path says, unless the parser is left out and it says `once`."""
    if not (plain and "once" in path):
        _misbehave(path)
    return Prepared(_NAME, len(content))


def _misbehave(path: str) -> None:
    if "segv" in path:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "kill" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    if "exit" in path:
        os._exit(1)
    if "sleep" in path:
        time.sleep(600)
    if "spin" in path:
        while True:
            pass
    if "raise" in path:
        raise ValueError("nothing to do with the file")
    if "memory" in path:
        bytearray(2**40)


def nasty(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker whose `prepare` is the one above."""
    work(connection, beat, limits, prepare)


class _Code:
    """What makes a file when it is unpickled."""

    def __init__(self, paths: str) -> None:
        self._marker = paths.rpartition("code ")[2]

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self._marker,)


def babbling(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker that answers, but not what was asked."""
    connection.send("ready")
    jobs = connection.recv()
    paths = " ".join(job.path for job in jobs)
    if "bytes" in paths:
        connection.send_bytes(b"\x00\x01 no pickle")
    elif "frame" in paths:
        os.write(connection.fileno(), b"\x7f\xff\xff\xff garbage")
    elif "code" in paths:
        connection.send_bytes(pickle.dumps(_Code(paths)))
    elif "other" in paths:
        connection.send(
            [WorkerReply(job.key + 1, None, None, None, False) for job in jobs]
        )
    else:
        connection.send([])
    time.sleep(600)


def stillborn(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker that ends before it is ready."""


def patient(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker whose alarm rings before its pool's limit."""
    work(connection, beat, replace(limits, alarm=1), prepare)


def telling(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker that tells where it is, where it looks for modules, what it has."""
    shown = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if sys.platform == "linux" else 0
    connection.send((Path.cwd(), sys.path, limits, dict(os.environ), shown))
    with contextlib.suppress(EOFError):
        connection.recv()
