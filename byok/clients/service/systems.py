"""The systems that keep programs running: launchd, systemd, the Task Scheduler."""

import csv
import ntpath
import plistlib
import re
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

LABEL = "byok.daemon"
_PID = re.compile(r"^\s*pid = (\d{1,9})$", re.MULTILINE)
_STATE = re.compile(r"^\s*state = ([\w ]{1,40})$", re.MULTILINE)


@dataclass
class Launchd(ServiceSystem):
    """The agents of one user; `folder` is their LaunchAgents, `uid` who they are."""

    folder: Path
    uid: int
    title = "launchd"
    cure = (
        "launchd keeps programs of users who are logged in at the screen. Log in, "
        "or run `byok serve`."
    )

    def __post_init__(self) -> None:
        """Name the agent in all commands.

        It is unloaded to stop it: it would be started again if it were only ended.
        launchd refuses to load what it has not quite unloaded, so that is tried again.
        """
        domain = f"gui/{self.uid}"
        target = f"{domain}/{LABEL}"
        self.paths = (self.folder / f"{LABEL}.plist",)
        load = ("launchctl", "bootstrap", domain, str(self.paths[0]))
        enable = Command(("launchctl", "enable", target))
        kick = Command(("launchctl", "kickstart", target))
        self.check = Command(("launchctl", "print", domain), seconds=15)
        self.start = (enable, Command(load, may_fail=True), kick)
        self.stop = (Command(("launchctl", "bootout", target), may_fail=True),)
        self.remove = self.stop
        self.restart = (*self.stop, enable, Command(load, tries=10))
        self.install = self.restart
        self.query = (
            Command(("launchctl", "print", target), may_fail=True),
            Command(("launchctl", "print-disabled", domain), may_fail=True),
        )

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the property list; what the daemon prints is in its log anyway."""
        values = {
            "Comment": launch.mark,
            "Label": LABEL,
            "ProgramArguments": launch.command("serve"),
            "EnvironmentVariables": dict(launch.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": 30,
            "ProcessType": "Interactive",  # editors wait for it
            "Umask": 0o077,
            "StandardOutPath": "/dev/null",
            "StandardErrorPath": "/dev/null",
        }
        content = plistlib.dumps(values, sort_keys=False).decode()
        return [ServiceFile(self.paths[0], content)]

    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read what launchd prints of the agent, in words that are not translated."""
        agent, disabled = results
        if agent.exit_code:
            return ServiceState(enabled=self._is_enabled(disabled.out))
        pid, state = _PID.search(agent.out), _STATE.search(agent.out)
        return ServiceState(
            enabled=self._is_enabled(disabled.out),
            running=pid is not None,
            pid=int(pid[1]) if pid else 0,
            detail=state[1] if state else "",
        )

    def _is_enabled(self, listed: str) -> bool:
        """Tell whether the agent starts at login; older systems print true for not."""
        return not re.search(rf'"{re.escape(LABEL)}" => (true|disabled)', listed)


# systemd: two units of the user's own manager, byok.service and byok.socket.
#
# Options that give the service a file system of its own need user namespaces; some
# kernels and distributions deny them to users. `probe` finds that out, as a service
# with such options would not start there.


_SOCKET, _SERVICE = UNITS = ("byok.socket", "byok.service")
_FACTS = ("LoadState", "UnitFileState", "ActiveState", "SubState", "MainPID")
_OWN_TMP = "PrivateTmp=yes"
_SHARED = ("/tmp", "/var/tmp")  # noqa: S108 - what PrivateTmp replaces
_SPECIAL = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%"})


def quote(text: str) -> str:
    """Quote a word for a unit; `%` begins a specifier there.

    A `$` needs no care: it has a meaning in commands only, and a `:` before the command
    takes that away.
    """
    return f'"{text.translate(_SPECIAL)}"'


def command_line(arguments: Sequence[str]) -> str:
    """Return a command for a unit; its variables are not replaced, due to the `:`.

    systemd takes no program whose path has quotes; env starts that in its place.
    """
    env = ("/usr/bin/env",) if set("\"'\\") & set(arguments[0]) else ()
    return ":" + " ".join(map(quote, (*env, *arguments)))


def _systemctl(*arguments: str, may_fail: bool = False) -> Command:
    return Command(("systemctl", "--user", *arguments), may_fail)


@dataclass
class Systemd(ServiceSystem):
    """The user's systemd; `folder` is where it looks for units."""

    folder: Path
    title = "systemd"
    cure = (
        "byok service needs a systemd that runs for your user. In WSL: put "
        "`systemd=true` below `[boot]` into /etc/wsl.conf, then run `wsl --shutdown`. "
        "After su or sudo: log in as this user instead. In a container, let "
        "`byok serve` be its command."
    )
    starts_on_request = True
    check = Command(("systemctl", "--user", "show-environment"), seconds=15)
    start = (
        _systemctl("reset-failed", *UNITS, may_fail=True),
        _systemctl("start", *UNITS),
    )
    stop = (_systemctl("stop", *UNITS),)
    restart = (
        _systemctl("daemon-reload"),  # the user's own lines may have changed
        _systemctl("reset-failed", *UNITS, may_fail=True),
        _systemctl("stop", *UNITS),  # the port may be another one
        _systemctl("start", *UNITS),
    )
    install = (
        _systemctl("daemon-reload"),  # so that it knows what to enable
        _systemctl("enable", *UNITS),
        *restart,
    )
    remove = (_systemctl("disable", "--now", *UNITS, may_fail=True),)
    forget = (
        _systemctl("daemon-reload"),
        _systemctl("reset-failed", *UNITS, may_fail=True),
    )
    query = (
        _systemctl("show", f"--property={','.join(_FACTS)}", _SERVICE),
        _systemctl("show", "--property=ActiveState", _SOCKET),
    )

    def __post_init__(self) -> None:
        """Make the probe from the very options that the unit has."""
        self.paths = tuple(self.folder / unit for unit in UNITS)
        values = {"writable": "", "tmp": _OWN_TMP}
        lines = fill("sandbox.conf", values).splitlines()
        options = [f"--property={line}" for line in lines if "=" in line]
        ways = ("--user", "--quiet", "--wait", "--collect", "--service-type=exec")
        self.probe = Command(("systemd-run", *ways, *options, "true"), seconds=20)

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return both units."""
        hosts = ("127.0.0.1", "[::1]") if launch.has_ipv6 else ("127.0.0.1",)
        listen = "\n".join(f"ListenStream={host}:{launch.port}" for host in hosts)
        socket = fill(_SOCKET, {"mark": launch.mark, "listen": listen})
        contents = (socket, _render_service(launch))
        return [ServiceFile(*pair) for pair in zip(self.paths, contents, strict=True)]

    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read the properties of the service."""
        facts, socket = (_read_facts(result.out) for result in results)
        pid = facts.get("MainPID", "")
        return ServiceState(
            enabled=facts.get("UnitFileState") == "enabled",
            running=facts.get("ActiveState") in ("active", "reloading"),
            pid=int(pid) if pid.isascii() and pid.isdigit() else 0,
            detail=f"{facts.get('ActiveState', '')} ({facts.get('SubState', '')})",
            waits=socket.get("ActiveState") == "active",
        )


def _read_facts(printed: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in printed.splitlines())
    return {name: value for name, _, value in pairs}


def _render_service(launch: Launch) -> str:
    reload = (launch.python, "-P", "-m", "byok", "reload")
    pairs = [f"{name}={value}" for name, value in launch.environment.items()]
    values = {
        "mark": launch.mark,
        "serve": command_line(launch.command("serve")),
        "reload": command_line(reload),
        "environment": "\n".join(f"Environment={quote(pair)}" for pair in pairs),
        "sandbox": _render_sandbox(launch),
    }
    return fill(_SERVICE, values)


def _render_sandbox(launch: Launch) -> str:
    if not launch.sandbox:
        return "# This system cannot give the service a file system of its own."
    places = [f"ReadWritePaths={quote(f'-{folder}')}" for folder in launch.folders]
    below = any(folder.is_relative_to(t) for folder in launch.folders for t in _SHARED)
    tmp = "# It sees all of /tmp: its own folders are there." if below else ""
    values = {"writable": "\n".join(places), "tmp": tmp or _OWN_TMP}
    return fill("sandbox.conf", values).rstrip()


# The Task Scheduler of Windows: a task of the user that starts at logon.


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
