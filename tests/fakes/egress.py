"""Python processes that note, in a file, whom they connect to and what they start.

An audit hook sees every call of the socket module, also those of libraries; uvloop,
which connects below it, is hidden. Programs that are started are noted by their names.
"""

import os
import sys
from collections import Counter
from pathlib import Path

from tests.fakes.program import ROOT

_NOTES = "BYOK_TEST_EGRESS"
_HOOK = f'''
import os, sys
sys.modules["uvloop"] = None
_notes = os.open(os.environ["{_NOTES}"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def _note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        to = arguments[1]
        told = f"{{to[0]}} {{to[1]}}" if isinstance(to, tuple) else ""
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        told = str(arguments[0])
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        told = os.path.basename(os.fsdecode(arguments[0]))
    else:
        return
    if told:
        os.write(_notes, f"{{event}} {{told}}\\n".encode())

sys.addaudithook(_note)
'''


class Egress:
    """The notes of all processes that run in `environment`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_HOOK)
        self._notes = folder / "notes"
        self.environment = {
            "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
            _NOTES: str(self._notes),
        }

    @property
    def connections(self) -> Counter[tuple[str, int]]:
        """How often each address was connected to, or sent to."""
        found = self._noted("socket.connect", "socket.sendto", "socket.sendmsg")
        pairs = (told.rsplit(" ", 1) for told in found)
        return Counter((host, int(port)) for host, port in pairs)

    @property
    def names(self) -> set[str]:
        """The names of hosts that were looked up."""
        return {*self._noted("socket.getaddrinfo", "socket.gethostbyname")}

    @property
    def programs(self) -> set[str]:
        """The names of the programs that were started, but for Python itself."""
        started = self._noted("subprocess.Popen", "os.posix_spawn", "os.exec")
        return {*started} - {Path(sys.executable).name}

    def _noted(self, *events: str) -> list[str]:
        lines = (line.split(" ", 1) for line in self._notes.read_text().splitlines())
        return [told for event, told in lines if event in events]
