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

# launchd
LABEL = "byok.daemon"
_PID = re.compile(r"^\s*pid = (\d{1,9})$", re.MULTILINE)
_STATE = re.compile(r"^\s*state = ([\w ]{1,40})$", re.MULTILINE)
# systemd
_SOCKET, _SERVICE = UNITS = ("byok.socket", "byok.service")
_PROPERTIES = ("LoadState", "UnitFileState", "ActiveState", "SubState", "MainPID")
_PRIVATE_TMP = "PrivateTmp=yes"
_TMP_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - PrivateTmp replaces them
_SPECIAL = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%"})
# The Task Scheduler of Windows
TASK = "byok"
FILE = "service-task.xml"
_LAST_RESULT = 6  # the index of the column, as titles are translated
_RUNNING_CODES = {"267009", "0x41301"}  # SCHED_S_TASK_RUNNING
_START = (
    "import os; os.environ.update({variables!r}); from byok.cli import main; main()"
)


@dataclass
class Launchd(ServiceSystem):
    """The launchd agents of the user `uid`; `folder` is their LaunchAgents."""

    folder: Path
    uid: int
    title = "launchd"
    cure = (
        "launchd keeps programs of users who are logged in at the screen. Log in, "
        "or run `byok serve`."
    )

    def __post_init__(self) -> None:
        """Set the commands, all with the name of the agent.

        The agent is unloaded to stop it: launchd would restart it if it were only
        ended. launchd refuses to load an agent that is still being unloaded, so loading
        is retried.
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
        """Return the property list; output is discarded, as the daemon has a log."""
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
        """Read the state from launchd's output, which is always English."""
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
        """Tell whether the agent starts at login; older systems print true if not."""
        return not re.search(rf'"{re.escape(LABEL)}" => (true|disabled)', listed)


def quote(text: str) -> str:
    """Quote a word for a systemd unit, where `%` starts a specifier.

    `$` is not escaped: it has a meaning in commands only, and not after the `:` with
    which `command_line` begins.
    """
    return f'"{text.translate(_SPECIAL)}"'


def command_line(arguments: Sequence[str]) -> str:
    """Return a command for a systemd unit; the `:` turns off variables in it.

    systemd refuses a program whose path has quotes; env starts such a one instead.
    """
    env = ("/usr/bin/env",) if set("\"'\\") & set(arguments[0]) else ()
    return ":" + " ".join(map(quote, (*env, *arguments)))


def _systemctl(*arguments: str, may_fail: bool = False) -> Command:
    return Command(("systemctl", "--user", *arguments), may_fail)


@dataclass
class Systemd(ServiceSystem):
    """The user's systemd, with byok.service and byok.socket in the `folder` of units.

    The options that give the service a file system of its own need user namespaces,
    which some kernels and distributions deny to users. There a service with these
    options would not start, so `probe` tries them first.
    """

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
        _systemctl("daemon-reload"),  # the user's drop-in files may have changed
        _systemctl("reset-failed", *UNITS, may_fail=True),
        _systemctl("stop", *UNITS),  # both, as the port may have changed
        _systemctl("start", *UNITS),
    )
    install = (
        _systemctl("daemon-reload"),  # so that systemd knows the new units
        _systemctl("enable", *UNITS),
        *restart,
    )
    remove = (_systemctl("disable", "--now", *UNITS, may_fail=True),)
    forget = (
        _systemctl("daemon-reload"),
        _systemctl("reset-failed", *UNITS, may_fail=True),
    )
    query = (
        _systemctl("show", f"--property={','.join(_PROPERTIES)}", _SERVICE),
        _systemctl("show", "--property=ActiveState", _SOCKET),
    )

    def __post_init__(self) -> None:
        """Set the paths, and the probe with the same options as the unit."""
        self.paths = tuple(self.folder / unit for unit in UNITS)
        values = {"writable": "", "tmp": _PRIVATE_TMP}
        lines = fill("sandbox.conf", values).splitlines()
        options = [f"--property={line}" for line in lines if "=" in line]
        flags = ("--user", "--quiet", "--wait", "--collect", "--service-type=exec")
        self.probe = Command(("systemd-run", *flags, *options, "true"), seconds=20)

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return both units."""
        hosts = ("127.0.0.1", "[::1]") if launch.has_ipv6 else ("127.0.0.1",)
        listen = "\n".join(f"ListenStream={host}:{launch.port}" for host in hosts)
        socket = fill(_SOCKET, {"mark": launch.mark, "listen": listen})
        contents = (socket, _render_service(launch))
        return [ServiceFile(*pair) for pair in zip(self.paths, contents, strict=True)]

    def read_state(self, results: Sequence[CommandResult]) -> ServiceState:
        """Read the properties of the service."""
        service, socket = (_read_properties(result.out) for result in results)
        pid = service.get("MainPID", "")
        return ServiceState(
            enabled=service.get("UnitFileState") == "enabled",
            running=service.get("ActiveState") in ("active", "reloading"),
            pid=int(pid) if pid.isascii() and pid.isdigit() else 0,
            detail=f"{service.get('ActiveState', '')} ({service.get('SubState', '')})",
            waits=socket.get("ActiveState") == "active",
        )


def _read_properties(output: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in output.splitlines())
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
    lines = [f"ReadWritePaths={quote(f'-{folder}')}" for folder in launch.folders]
    in_tmp = any(
        folder.is_relative_to(tmp) for folder in launch.folders for tmp in _TMP_FOLDERS
    )
    tmp = "# It sees all of /tmp: its own folders are there." if in_tmp else ""
    values = {"writable": "\n".join(lines), "tmp": tmp or _PRIVATE_TMP}
    return fill("sandbox.conf", values).rstrip()


def _schtasks(*arguments: str, may_fail: bool = False) -> Command:
    return Command(("schtasks", *arguments), may_fail)


@dataclass
class WindowsTasks(ServiceSystem):
    """A task of `user` that starts at logon; its file is in `folder`."""

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
        """Set the commands; Windows copies the file when the task is registered."""
        self.paths = (self.folder / FILE,)
        file = str(self.paths[0])
        create = _schtasks("/create", "/tn", TASK, "/xml", file, "/f")
        self.install = (create, *self.restart)

    def render(self, launch: Launch) -> Sequence[ServiceFile]:
        """Return the description of the task, in the encoding that schtasks reads."""
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
        """Return the command line of the task.

        A task has no environment variables of its own, so Python code sets them.
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
        """Read the row of the task, and Windows' copy of its description."""
        table, description = results
        if table.exit_code or description.exit_code:
            return ServiceState()
        rows = [row for row in csv.reader(table.out.splitlines()) if row]
        codes = {row[_LAST_RESULT].lower() for row in rows if len(row) > _LAST_RESULT}
        settings = description.out.partition("<Settings>")[2]
        return ServiceState(
            enabled="<Enabled>false</Enabled>" not in settings.partition("<Idle")[0],
            running=not _RUNNING_CODES.isdisjoint(codes),
        )
