"""Start the daemon in the background, where it outlives the process that started it."""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from byok.core.platform.paths import make_private
from byok.core.platform.programs import safe_path_entries

_log = logging.getLogger(__name__)
_PAUSE = 60.0


def daemon_command(config: Path | None) -> list[str]:
    """Return the command that starts a daemon, or does nothing if one runs.

    `-P` keeps Python from importing modules of the current folder.
    """
    options = ["--config", str(config.absolute())] if config else []
    return [sys.executable, "-P", "-m", "byok", "serve", "--ensure", *options]


class Starter:
    """Starts a daemon at most once per `pause`; does not check whether it runs."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        pause: float = _PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the command and its folder; attempts are `pause` seconds apart."""
        self._command = command
        self._folder = folder
        self._pause = pause
        self._clock = clock
        self._tried: float | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it unless that was just tried; do not wait for it."""
        if self._tried is not None and self._clock() - self._tried < self._pause:
            return
        self._tried = self._clock()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            _log.warning("the daemon ended (exit %d); see `byok serve`", code)
        make_private(self._folder)
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                self._command,
                cwd=self._folder,
                # PATH may have folders of the project that this was started in.
                env={
                    **os.environ,
                    "PATH": os.pathsep.join(map(str, safe_path_entries())),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                creationflags=flags,
            )
        except OSError as error:
            _log.warning("the daemon did not start: %s", error)
