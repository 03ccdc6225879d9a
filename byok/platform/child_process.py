"""Run a program to its end: no shell, no terminal, limits of time and of output.

Which program it is has been decided before (`programs.find_program`). It runs in a
session of its own, so that its children end with it: one that survives would keep the
pipe open and hold up who reads it.
"""

import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from byok.platform.programs import kill_group

_BLOCK = 2**16
_LAST_WORDS = 1.0


@dataclass(frozen=True, slots=True)
class EndedProgram:
    """How a program ended, and the beginning of what it wrote; repr does not show that.

    It was ended before its time if `was_late`, or if it wrote more than `most`:
    `was_cut`. The exit code says nothing then.
    """

    exit_code: int
    out: bytes = field(repr=False)
    err: bytes = field(repr=False)
    was_late: bool = False
    was_cut: bool = False


def run_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    seconds: float,
    most: int = _BLOCK,
    folder: Path | None = None,
    given: bytes = b"",
) -> EndedProgram:
    """Run a program and return how it ended; `given` is its standard input.

    Its environment is nothing but this one, and its output is read up to `most` bytes.

    Raises:
        OSError: it cannot be started.
        ValueError: the command or the environment holds a zero character.
    """
    process = subprocess.Popen(  # noqa: S603 - no shell; the program was chosen before
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE if given else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    late = threading.Event()

    def stop() -> None:
        if process.returncode is None:
            late.set()
            kill_group(process.pid)

    err = bytearray()
    timer = threading.Timer(seconds, stop)
    beside = [
        threading.Thread(target=_keep_beginning, args=(process.stderr, err)),
        *([threading.Thread(target=_give, args=(process.stdin, given))] * bool(given)),
    ]
    out, is_whole = b"", False
    try:
        for thread in (timer, *beside):
            thread.daemon = True
            thread.start()
        out, is_whole = _read(process.stdout, most)
    finally:
        if not is_whole:
            kill_group(process.pid)
        process.wait()
        timer.cancel()
        for thread in beside:
            if thread.is_alive():
                thread.join(_LAST_WORDS)  # a child that it left may hold the pipe
    was_late = late.is_set()
    return EndedProgram(
        process.returncode,
        out,
        bytes(err),
        was_late=was_late,
        was_cut=not is_whole and not was_late,
    )


def _read(stream: IO[bytes] | None, most: int) -> tuple[bytes, bool]:
    """Return what a stream gives, at most so much, and whether that is all."""
    assert stream is not None  # noqa: S101 - a pipe was asked for
    blocks: list[bytes] = []
    room = most
    with stream:
        while block := stream.read(_BLOCK):
            blocks.append(block[:room])
            room -= len(block)
            if room < 0:
                return b"".join(blocks), False
    return b"".join(blocks), True


def _keep_beginning(stream: IO[bytes], kept: bytearray) -> None:
    with stream:
        while block := stream.read(_BLOCK):
            kept += block[: _BLOCK - len(kept)]


def _give(stream: IO[bytes], given: bytes) -> None:
    with suppress(OSError), stream:  # it may end without having read it
        stream.write(given)
