"""Reads the commits of a workspace with git, which may run no program of it.

A repository is not trusted, and its configuration can make git start programs (hooks,
monitors, filters, pagers, transports, gpg). All of these are switched off, the system's
and the user's configuration is not read, and nothing is fetched.
"""

import logging
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from byok.index.types import MOST_FILES, Commit, CommitHistory
from byok.index.workspace.commit_text import clean_message
from byok.index.workspace.renames import (
    MOST_RENAMES,
    ReadCommit,
    Rename,
    follow_renames,
)
from byok.platform.programs import clean_environment, find_program, kill_group

_log = logging.getLogger(__name__)

COMMITS = 3000
_SECONDS = 30.0
_QUICK = 2.0  # a call that takes longer waits on a pipe without a writer
_MOST_BYTES = 64 * 2**20
_BLOCK = 2**16
_LATEST = 253_402_300_799  # the end of the year 9999, as far as dates go

_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",  # no setting lifts it; older gits fetch without the next
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
# Each record: empty, hash, time, message, empty, then its files up to the next record.
_FORMAT = "--format=tformat:%x00%H%x00%ct%x00%B%x00"
_LOG = (
    *("log", "-z", "--name-status", "--relative", "--no-merges"),
    # Exact renames: by the names of objects, whose contents may not be there.
    *("-M100%", "--no-rename-empty"),
    *("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-notes", "--ignore-submodules=all", "--encoding=UTF-8", _FORMAT),
    *("--no-mailmap", "-O/dev/null"),  # files that the repository names
)
_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def head(root: Path, *, git: str | None = None) -> str | None:
    """Return the commit that is checked out, or None; a few milliseconds."""
    try:
        return _place(root, git or _git(root))[1]
    except _RefusedError:
        return None


def origin(root: Path, *, git: str | None = None) -> str:
    """Return the address that a repository was cloned from, "" if there is none."""
    command = ["config", "--local", "--no-includes", "--get", "remote.origin.url"]
    try:
        ran = _run(git or _git(root), command, root, _QUICK, _BLOCK)
    except _RefusedError:
        return ""
    return "" if ran.trouble else ran.output.decode("utf-8", "replace").strip()


def read_history(
    root: Path,
    *,
    limit: int = COMMITS,
    git: str | None = None,
    seconds: float = _SECONDS,
    most_bytes: int = _MOST_BYTES,
) -> CommitHistory | None:
    """Read the last commits that touched `root`.

    None where there is no git, no repository, no commit, or where git refuses; the log
    says why. What takes longer than `seconds` or is larger than `most_bytes` gives the
    newest part.
    """
    try:
        program = git or _git(root)
        prefix, newest = _place(root, program)
        # A pathspec makes git simplify the history: only where it leaves files out.
        below = ["--", "."] if prefix else ["--"]
        command = [*_LOG, f"--max-count={limit}", newest, *below]
        ran = _run(program, command, root, seconds, most_bytes)
        commits = follow_renames([*_commits(ran.output, whole=not ran.trouble)])
        if ran.trouble and not commits:
            raise _RefusedError(ran.trouble)
    except _RefusedError as refused:
        _log.info("searching %s without its history: %s", root, refused)
        return None
    if ran.trouble:
        _log.warning("the history of %s is incomplete: %s", root, ran.trouble)
    return CommitHistory(newest, commits)


class _RefusedError(Exception):
    """There is no history; the message says why."""


class _Ran(NamedTuple):
    output: bytes
    trouble: str


def _git(root: Path) -> str | None:
    return find_program("git", never=[root])


def _place(root: Path, program: str | None) -> tuple[str, str]:
    """Return where in its repository a folder is, and the commit checked out.

    That commit is looked up: so every file of git's that may hinder the log does so
    here, where little time is given.
    """
    command = ["rev-parse", "--show-prefix", "--verify", "HEAD^{commit}"]
    ran = _run(program, command, root, _QUICK, _BLOCK)
    if ran.trouble:
        raise _RefusedError(ran.trouble)
    prefix, _, name = ran.output.decode("utf-8", "replace")[:-1].rpartition("\n")
    if not _NAME.fullmatch(name):
        raise _RefusedError("git did not name the commit")
    return prefix, name


def _run(
    program: str | None, command: list[str], root: Path, seconds: float, most: int
) -> _Ran:
    """Run git with limits of time and output; its whole process group ends with it."""
    if program is None:
        raise _RefusedError("git was not found")
    late = threading.Event()
    with tempfile.TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(  # noqa: S603 - an absolute path, no shell
                [program, *_SAFE, *command],
                cwd=root,
                env=clean_environment(_ENVIRONMENT),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _RefusedError(f"git did not start ({error})") from error

        def stop() -> None:
            if process.returncode is None:
                late.set()
                kill_group(process.pid)

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        whole = False
        try:
            output, whole = _read(process, most)
        finally:
            if not whole:
                kill_group(process.pid)
            process.wait()
            timer.cancel()
        complaints.seek(0)
        said = complaints.read(_BLOCK)
    if late.is_set():
        return _Ran(output, f"git was not done in {seconds:g} s")
    if not whole:
        return _Ran(output, f"git wrote more than {most} bytes")
    return _Ran(output, _trouble(process.returncode, said))


def _trouble(code: int, said: bytes) -> str:
    if code == 0:
        return ""
    if b"dubious ownership" in said:
        return "the repository belongs to another user, so git does not read it"
    if b"not a git repository" in said:
        return "it is no git repository"
    return f"git failed (exit {code})"


def _read(process: "subprocess.Popen[bytes]", most: int) -> tuple[bytes, bool]:
    assert process.stdout is not None  # noqa: S101 - asked for above
    blocks = []
    room = most
    with process.stdout as stream:
        while block := stream.read(_BLOCK):
            blocks.append(block[:room])
            room -= len(block)
            if room < 0:
                return b"".join(blocks), False
    return b"".join(blocks), True


def _commits(output: bytes, *, whole: bool) -> Iterator[ReadCommit]:
    """Read the records; the last of an output that breaks off is left out."""
    fields = iter(output.split(b"\0"))
    made: ReadCommit | None = None
    room = MOST_RENAMES
    next(fields, None)  # what is before the first record
    while True:
        try:
            name, seconds, message = next(fields), next(fields), next(fields)
            next(fields)
        except StopIteration:
            break
        commit = name.decode("ascii", "replace")
        if not _NAME.fullmatch(commit):
            break
        if made is not None:
            yield made
        files, touched, renames = _files(fields, room)
        room -= len(renames)
        read = Commit(
            commit,
            min(int(seconds), _LATEST) if seconds.isdigit() else 0,
            clean_message(message.decode("utf-8", "replace")),
            tuple(files),
            touched,
        )
        made = ReadCommit(read, renames)
    if made is not None and whole:
        yield made


def _files(
    fields: Iterator[bytes], most_renames: int
) -> tuple[list[str], int, list[Rename]]:
    """Read the files of a record: the first paths, how many there are, what moved.

    A file that moved counts twice: one is gone and one is new.
    """
    files: list[str] = []
    renames: list[Rename] = []
    touched = 0
    while status := next(fields, b""):
        # The first status stands on a line of its own.
        moved = status.removeprefix(b"\n").startswith(b"R")
        paths = [next(fields, b"") for _ in range(1 + moved)]
        named = [path.decode("utf-8", "backslashreplace") for path in paths]
        touched += len(named)
        files += named[: max(0, MOST_FILES - len(files))]
        if moved and len(renames) < most_renames:
            renames.append(Rename(*named))
    return files, touched, renames
