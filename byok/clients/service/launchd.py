"""launchd: an agent of the user on macOS."""

import plistlib
import re
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
