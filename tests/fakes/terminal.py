"""byok's command line at a terminal of its own, with somebody who types."""

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT

_QUIET = 0.5  # seconds


class Typist:
    """Reads what byok shows and types; `shown` is all of it so far."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int) -> None:
        self.process = process
        self._handle = handle
        self.shown = ""
        self._read = 0

    def wait_for(self, text: str) -> None:
        """Wait until byok shows this text, behind what was waited for before."""
        while (at := self.shown.find(text, self._read)) < 0:
            assert self._read_more(), f"it ended before {text!r}: {self.shown}"
        self._read = at + len(text)

    def type(self, line: str) -> None:
        os.write(self._handle, line.encode() + b"\n")

    def type_unseen(self, line: str) -> None:
        """Type once the terminal shows nothing of it: what came before is dropped."""
        while termios.tcgetattr(self._handle)[3] & termios.ECHO:
            time.sleep(0.02)
        self.type(line)

    def interrupt(self) -> None:
        """Press Ctrl-C at a question that is shown whole: readline misses it before."""
        while select.select([self._handle], [], [], _QUIET)[0]:
            assert self._read_more(), f"it has ended: {self.shown}"
        self.process.send_signal(signal.SIGINT)

    def wait_for_end(self) -> int:
        """Return the exit code, after all that was shown."""
        while self._read_more():
            pass
        return self.process.wait(PATIENCE)

    def _read_more(self) -> bool:
        ready, _, _ = select.select([self._handle], [], [], PATIENCE)
        assert ready, f"nothing more was shown: {self.shown}"
        try:
            data = os.read(self._handle, 65536)
        except OSError:  # Linux says so at the end
            return False
        self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)


@contextmanager
def typing_to(
    *arguments: str, env: Mapping[str, str], echoes: bool = False
) -> Iterator[Typist]:
    """Run byok at a terminal, in the environment of the test plus `env`.

    What is typed is not shown among the answers, unless it `echoes`.
    """
    ours, theirs = pty.openpty()
    if not echoes:
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        [sys.executable, "-m", "byok", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "200", **env},
        cwd=ROOT,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Typist(process, ours)
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            os.close(ours)
