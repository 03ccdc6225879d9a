"""systemd for one user, as far as `byok service` asks it: its units really run.

The programs systemctl and systemd-run are put into a folder of PATH. Starting the units
opens the sockets of byok.socket, starts the command of byok.service with them, and
waits until it says that it is ready.
"""

import os
import sys
from pathlib import Path

from tests.fakes.program import ROOT

_PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.fakes.systemctl_program import main
main({state!r}, sys.argv)
"""


class FakeSystemd:
    """The folder of such programs, and what was asked of them."""

    def __init__(self, folder: Path) -> None:
        """Put the programs into `folder`, which must exist and be empty."""
        self.folder = folder
        for name in ("systemctl", "systemd-run"):
            program = folder / name
            values = {"python": sys.executable, "root": str(ROOT), "state": str(folder)}
            program.write_text(_PROGRAM.format(**values))
            program.chmod(0o755)

    @property
    def path(self) -> str:
        """The value of PATH with these programs first."""
        return os.pathsep.join([str(self.folder), os.environ["PATH"]])

    @property
    def calls(self) -> list[str]:
        """Every call, with the name of the program."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def fail(self, call: str) -> None:
        """Let a call that begins so fail from now on."""
        (self.folder / "fails").write_text(call)
