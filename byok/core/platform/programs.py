"""Find and start system programs, never those of a repository."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_ENDING = ".exe" if sys.platform == "win32" else ""
_PACKAGES = "node_modules"  # `npm run` puts programs of all packages into PATH
_sources: list[Callable[[], Iterable[Path]]] = []


def distrust(folders: Callable[[], Iterable[Path]]) -> None:
    """Take no program from the folders that this gives, nor from below, in any search.

    It is called at each search, because workspaces come and go while a process runs.
    The command line calls this once, at its start.
    """
    _sources.append(folders)


def project_of(folder: Path) -> Path:
    """Return the root of the git repository around a folder, else the folder.

    A repository that is the home folder, or contains it, does not count.
    """
    for place in (folder, *folder.parents):
        if _has_home(place):
            break
        if (place / ".git").exists():
            return place
    return folder


def _has_home(folder: Path) -> bool:
    """Tell whether a folder is the user's home, or contains it."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # nobody knows where it is
        home = Path(folder.anchor)
    return home.is_relative_to(folder)


def safe_path_entries(
    path: str | None = None, never: Iterable[Path] = ()
) -> Iterator[Path]:
    """Give the entries of `path` (by default PATH) that may be searched for programs.

    Excluded is what a repository may control: relative entries, folders inside one of
    `never`, of the folders to `distrust`, or of the project around the current folder,
    and packages of npm. So are folders that cannot be resolved.
    """
    known = (folder for source in _sources for folder in source())
    forbidden = [folder.resolve() for folder in (*never, *known)]
    here = _current_folder()
    if here is not None:
        project = project_of(here)
        if not _has_home(project):
            forbidden.append(project)
    value = os.environ.get("PATH", os.defpath) if path is None else path
    for entry in value.split(os.pathsep):
        folder = Path(entry)
        if not folder.is_absolute():
            continue
        try:
            place = folder.resolve()
        except (OSError, RuntimeError):  # links that lead round in a circle
            continue
        if place == here or _PACKAGES in place.parts:
            continue
        if not any(place.is_relative_to(root) for root in forbidden):
            yield folder


def _current_folder() -> Path | None:
    try:
        return Path.cwd().resolve()
    except OSError:  # it is gone
        return None


def find_program(
    name: str, *, path: str | None = None, never: Iterable[Path] = ()
) -> str | None:
    """Return the absolute path of a program in one of the trusted folders, or None."""
    for folder in safe_path_entries(path, never):
        program = folder / f"{name}{_ENDING}"
        with suppress(OSError):  # a folder that may not be entered
            if program.is_file() and os.access(program, os.X_OK):
                return str(program)
    return None


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with only PATH and the locale, and `extra`."""
    kept = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    if "SYSTEMROOT" in os.environ:  # without it nothing starts on Windows
        kept["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return {**kept, **(extra or {})}


def kill_group(pid: int) -> None:
    """Kill a process that was started in its own session, and its children."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)


# Run a program to its end: no shell, no terminal, limits of time and of output.
#
# Which program it is has been decided before (`programs.find_program`). It runs in a
# session of its own, so that its children end with it: one that survives would keep the
# pipe open and hold up who reads it.


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
