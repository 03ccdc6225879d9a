"""A process for parsing, started so that no folder it is about has a say.

multiprocessing would start it with the current folder first in the search path: a
repository with a `pickle.py` would run code. So it is an isolated Python (`-I`), whose
search path byok's own one only follows.
"""

import subprocess
import sys
from contextlib import ExitStack, suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

from byok.context.worker import Limits
from byok.search_path import without_working_folder

_END_SECONDS = 2.0
_START = (
    "import sys; handle, beat, *path = sys.argv[1:]; "
    "sys.path += [entry for entry in path if entry not in sys.path]; "
    "from byok.context.worker import main; main(int(handle), int(beat))"
)


class WorkerProcess:
    """One process, the pipe to it, and the one that its heartbeat comes from."""

    def __init__(self, target: str, limits: Limits) -> None:
        """Start it; `target` names what it runs, as in "byok.context.worker:run".

        Raises:
            OSError: the system has no room for another process.
        """
        with ExitStack() as ours:
            self.connection, theirs = map(ours.enter_context, Pipe())
            self.beat, beats = map(ours.enter_context, Pipe(duplex=False))
            handles = (theirs.fileno(), beats.fileno())
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [*_python(), "-c", _START, *map(str, handles), *_search_path()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=Path(sys.executable).anchor,
                **_inheriting(handles),
            )
            theirs.close()
            beats.close()
            ours.pop_all()
        with suppress(OSError):  # it ended at once, as who listens will hear
            self.connection.send((target, limits))

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, None while it lives."""
        return self._process.returncode

    def end(self) -> None:
        """End it, whatever it is doing."""
        self.connection.close()
        self.beat.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):  # not even that ended it
            self._process.wait(_END_SECONDS)


def _python() -> list[str]:
    """File names must be read there as they are here."""
    return [sys.executable, "-I", f"-Xutf8={sys.flags.utf8_mode}"]


def _search_path() -> list[str]:
    return [p for p in without_working_folder(sys.path) if Path(p).is_absolute()]


def _inheriting(handles: tuple[int, ...]) -> dict[str, Any]:
    """Return what lets a new process have some handles, and nothing else."""
    if sys.platform != "win32":
        return {"pass_fds": handles}
    import os

    for handle in handles:
        os.set_handle_inheritable(handle, True)
    listed = {"handle_list": list(handles)}
    return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList=listed)}
