"""The Task Scheduler of Windows: a task of the user that starts at logon."""

import csv
import ntpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import list2cmdline  # it quotes for Windows on every system
from xml.sax.saxutils import escape

from byok.clients.service.base import (
    Command,
    CommandResult,
    Launch,
    ServiceFile,
    ServiceState,
    ServiceSystem,
    fill,
)

TASK = "byok"
FILE = "service-task.xml"
_LAST_RESULT = 6  # the column, counted from 0: the titles are translated
_RUNS = {"267009", "0x41301"}  # SCHED_S_TASK_RUNNING
_START = (
    "import os; os.environ.update({variables!r}); from byok.cli import main; main()"
)


def _schtasks(*arguments: str, may_fail: bool = False) -> Command:
    return Command(("schtasks", *arguments), may_fail)


@dataclass
class WindowsTasks(ServiceSystem):
    """The tasks of one user; `folder` is where byok keeps what it registered."""

    folder: Path
    user: str
    title = "the Task Scheduler"
    cure = "Start the service `Schedule` of Windows, then try again."
    kills = True
    taken = _schtasks("/query", "/tn", TASK)
    start = (_schtasks("/run", "/tn", TASK),)
    stop = (_schtasks("/end", "/tn", TASK, may_fail=True),)
    restart = (*stop, *start)
    remove = (*stop, _schtasks("/delete", "/tn", TASK, "/f"))
    query = (
        _schtasks("/query", "/tn", TASK, "/v", "/fo", "csv", "/nh", may_fail=True),
        _schtasks("/query", "/tn", TASK, "/xml", may_fail=True),
    )

    def __post_init__(self) -> None:
        """Register the task by its file, of which Windows has a copy; start it."""
        self.paths = (self.folder / FILE,)
        file = str(self.paths[0])
        create = _schtasks("/create", "/tn", TASK, "/xml", file, "/f")
        self.install = (create, *self.restart)

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the description, in the encoding that schtasks takes."""
        program, *arguments = self._command(launch)
        values = {
            "mark": launch.mark,
            "user": self.user,
            "command": program,
            "arguments": list2cmdline(arguments),
        }
        content = fill(
            "task.xml", {name: escape(text) for name, text in values.items()}
        )
        return [ServiceFile(self.paths[0], content, "utf-16")]

    def _command(self, launch: Launch) -> list[str]:
        """Return the command; a task has no variables of its own, so Python sets them.

        pythonw.exe opens no window.
        """
        folder, name = ntpath.split(launch.python)
        if name.lower() == "python.exe":
            name = "pythonw.exe"
        python = ntpath.join(folder, name)
        if not launch.environment:
            return [python, *launch.command("serve")[1:]]
        start = _START.format(variables=dict(launch.environment))
        return [python, "-P", "-c", start, "serve", *launch.options]

    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read one line of the table, and the copy that Windows has."""
        table, description = results
        if table.exit_code or description.exit_code:
            return ServiceState()
        rows = [row for row in csv.reader(table.out.splitlines()) if row]
        codes = {row[_LAST_RESULT].lower() for row in rows if len(row) > _LAST_RESULT}
        settings = description.out.partition("<Settings>")[2]
        return ServiceState(
            enabled="<Enabled>false</Enabled>" not in settings.partition("<Idle")[0],
            running=not _RUNS.isdisjoint(codes),
        )
