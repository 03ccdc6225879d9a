"""systemd: two units of the user's own manager, byok.service and byok.socket.

Options that give the service a file system of its own need user namespaces; some
kernels and distributions deny them to users. `probe` finds that out, as a service with
such options would not start there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byok.clients.service.base import (
    Command,
    CommandResult,
    Launch,
    ServiceFile,
    ServiceState,
    ServiceSystem,
    fill,
)

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
        contents = (_render_socket(launch), _render_service(launch))
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


def _render_socket(launch: Launch) -> str:
    hosts = ("127.0.0.1", "[::1]") if launch.has_ipv6 else ("127.0.0.1",)
    listen = "\n".join(f"ListenStream={host}:{launch.port}" for host in hosts)
    return fill(_SOCKET, {"mark": launch.mark, "listen": listen})
