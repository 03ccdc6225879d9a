"""Workers that misbehave at files with certain names, as parsers do at bad input."""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from msgspec.structs import replace

from byok.search.index.parse.worker import WorkerLimits, work
from byok.search.index.types import Prepared

_NAME = bytes(32)


def prepare(path: str, content: bytes, *, plain: bool, deadline: float) -> Prepared:
    """Do what the path says, unless the parser is left out and it says `once`."""
    if not (plain and "once" in path):
        _misbehave(path)
    return Prepared(_NAME, len(content))


def _misbehave(path: str) -> None:
    for word, do in _DEEDS.items():
        if word in path:
            do(path)


def _die_twice(path: str) -> None:
    """Be killed, as by a system without memory, the first two times.

    With "room" in its path it ends as a library does that gets no memory.
    """
    marker = Path(path.rpartition("twice ")[2])
    with marker.open("a") as file:
        file.write("x")
    if marker.stat().st_size <= 2:
        if "room" in path:
            print("memory allocation of 4096 bytes failed", file=sys.stderr)
            os.abort()
        os.kill(os.getpid(), signal.SIGKILL)


def _spin(_: str) -> None:
    while True:
        pass


def _raise(_: str) -> None:
    raise ValueError("nothing to do with the file")


def _print(_: str) -> None:
    print("grammar: cannot go on\x1b[31m", file=sys.stderr)
    os.abort()


_DEEDS: dict[str, Callable[[str], object]] = {
    "segv": lambda _: os.kill(os.getpid(), signal.SIGSEGV),
    "kill ": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "twice": _die_twice,
    "sleep": lambda _: time.sleep(600),
    "spin": _spin,
    "print": _print,
    "raise": _raise,
    "memory": lambda _: bytearray(2**40),
}


def nasty(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker whose `prepare` is the one above."""
    work(connection, beat, limits, prepare)


def babbling(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker that answers, but not what was asked."""
    connection.send("ready")
    jobs = connection.recv()
    paths = " ".join(job.path for job in jobs)
    if "bytes" in paths:
        connection.send_bytes(b"\x00\x01 no pickle")
    else:
        os.write(connection.fileno(), b"\x7f\xff\xff\xff garbage")
    time.sleep(600)


def timeless(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker without a timer."""
    work(connection, beat, replace(limits, process=0), prepare)


def patient(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker whose time is used up before its pool's limit."""
    work(connection, beat, replace(limits, process=1), prepare)


def telling(connection: Connection, beat: Connection, limits: WorkerLimits) -> None:
    """Be a worker that tells where it is, where it looks for modules, what it has."""
    shown = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if sys.platform == "linux" else 0
    connection.send((Path.cwd(), sys.path, limits, dict(os.environ), shown))
    with contextlib.suppress(EOFError):
        connection.recv()
