"""Starts a parser process that nothing in an indexed folder can influence.

multiprocessing would put the current folder first in the search path, so a repository
with a `pickle.py` would run code. Therefore the process is an isolated Python (`-I`),
with byok's own search path behind the standard one. It does not get the environment,
which may hold keys: parsers are third-party code, and other processes of the user can
read the environment of a process.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any

from byok.escapes import escape
from byok.index.parse.worker import WorkerLimits
from byok.platform.programs import clean_environment
from byok.platform.search_path import without_working_folder

_END_SECONDS = 2.0
_LONGEST_LINE = 300
_START = (
    "import sys; handle, beat, *path = sys.argv[1:]; "
    "sys.path += [entry for entry in path if entry not in sys.path]; "
    "from byok.index.parse.worker import main; main(int(handle), int(beat))"
)


class WorkerProcess:
    """One process, the pipe to it, and the one that its heartbeat comes from."""

    def __init__(self, target: str, limits: WorkerLimits) -> None:
        """Start it; `target` names what it runs, as in "byok.index.parse.worker:run".

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
