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

_EXECUTABLE_SUFFIX = ".exe" if sys.platform == "win32" else ""
_NPM_PACKAGES = "node_modules"  # `npm run` puts programs of all packages into PATH
_BLOCK_BYTES = 2**16
_JOIN_SECONDS = 1.0
_distrusted_sources: list[Callable[[], Iterable[Path]]] = []


def distrust(folders: Callable[[], Iterable[Path]]) -> None:
    """Exclude the folders that `folders` returns, and all below them, from searches.

    `folders` is called at each search, because workspaces change while a process runs.
    The command line calls `distrust` once, at its start.
    """
    _distrusted_sources.append(folders)


def project_of(folder: Path) -> Path:
    """Return the root of the git repository around a folder, else the folder.

    A repository that is the home folder, or contains it, does not count.
    """
    for parent in (folder, *folder.parents):
        if _has_home(parent):
            break
        if (parent / ".git").exists():
            return parent
    return folder


def _has_home(folder: Path) -> bool:
    """Tell whether a folder is the user's home, or contains it."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # the user has no home folder
        home = Path(folder.anchor)
    return home.is_relative_to(folder)


def safe_path_entries(
    path: str | None = None, never: Iterable[Path] = ()
) -> Iterator[Path]:
    """Yield the entries of `path` (by default PATH) that may be searched for programs.

    Entries that a repository may control are excluded: relative entries, packages of
    npm, and folders inside one of `never`, of the folders to `distrust`, or of the
    project of the current folder. So are folders that cannot be resolved.
    """
    distrusted = (folder for source in _distrusted_sources for folder in source())
    forbidden = [folder.resolve() for folder in (*never, *distrusted)]
    current = _current_folder()
    if current is not None:
        project = project_of(current)
        if not _has_home(project):
            forbidden.append(project)
    value = os.environ.get("PATH", os.defpath) if path is None else path
    for entry in value.split(os.pathsep):
        folder = Path(entry)
        if not folder.is_absolute():
            continue
        try:
            resolved = folder.resolve()
        except (OSError, RuntimeError):  # links that form a circle
            continue
        if resolved == current or _NPM_PACKAGES in resolved.parts:
            continue
        if not any(resolved.is_relative_to(root) for root in forbidden):
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
        program = folder / f"{name}{_EXECUTABLE_SUFFIX}"
        with suppress(OSError):  # a folder that may not be entered
            if program.is_file() and os.access(program, os.X_OK):
                return str(program)
    return None


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with only PATH and the locale, and `extra`."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    if "SYSTEMROOT" in os.environ:  # without it nothing starts on Windows
        variables["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return {**variables, **(extra or {})}


def kill_group(pid: int) -> None:
    """Kill a process that was started in its own session, and its children."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class EndedProgram:
    """How a program ended, and the beginning of its output, which repr does not show.

    It was killed if it ran too long (`was_late`) or wrote too much (`was_cut`); its
    exit code is meaningless then.
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
    max_bytes: int = _BLOCK_BYTES,
    folder: Path | None = None,
    stdin_bytes: bytes = b"",
) -> EndedProgram:
    """Run a program to its end; no shell and no terminal.

    `environment` is its whole environment, and at most `max_bytes` of its output are
    read. The caller has chosen the program, by `find_program`. It runs in a session of
    its own, so that its children can be killed with it: a child that survives would
    keep the pipe open and block the reader.

    Raises:
        OSError: it cannot be started.
        ValueError: the command or the environment holds a zero character.
    """
    process = subprocess.Popen(  # noqa: S603 - no shell; the program was chosen before
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE if stdin_bytes else subprocess.DEVNULL,
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
    helpers = [threading.Thread(target=_read_beginning, args=(process.stderr, err))]
    if stdin_bytes:
        arguments = (process.stdin, stdin_bytes)
        helpers.append(threading.Thread(target=_write_stdin, args=arguments))
    out, is_whole = b"", False
    try:
        for thread in (timer, *helpers):
            thread.daemon = True
            thread.start()
        out, is_whole = _read_stdout(process.stdout, max_bytes)
    finally:
        if not is_whole:
            kill_group(process.pid)
        process.wait()
        timer.cancel()
        for thread in helpers:
            if thread.is_alive():
                thread.join(_JOIN_SECONDS)  # a surviving child may hold the pipe open
    was_late = late.is_set()
    return EndedProgram(
        process.returncode,
        out,
        bytes(err),
        was_late=was_late,
        was_cut=not is_whole and not was_late,
    )


def _read_stdout(stream: IO[bytes] | None, max_bytes: int) -> tuple[bytes, bool]:
    """Read a stream up to a limit; return the bytes, and whether these are all."""
    assert stream is not None  # noqa: S101 - a pipe was asked for
    blocks: list[bytes] = []
    remaining = max_bytes
    with stream:
        while block := stream.read(_BLOCK_BYTES):
            blocks.append(block[:remaining])
            remaining -= len(block)
            if remaining < 0:
                return b"".join(blocks), False
    return b"".join(blocks), True


def _read_beginning(stream: IO[bytes], beginning: bytearray) -> None:
    with stream:
        while block := stream.read(_BLOCK_BYTES):
            beginning += block[: _BLOCK_BYTES - len(beginning)]


def _write_stdin(stream: IO[bytes], content: bytes) -> None:
    with suppress(OSError), stream:  # it may end without having read it
        stream.write(content)
