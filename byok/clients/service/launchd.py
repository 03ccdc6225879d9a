"""launchd: an agent of the user on macOS."""

import plistlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from byok.clients.service.base import (
    Command,
    CommandResult,
    Launch,
    ServiceFile,
    ServiceState,
)

LABEL = "byok.daemon"
_PID = re.compile(r"^\s*pid = (\d{1,9})$", re.MULTILINE)
_STATE = re.compile(r"^\s*state = ([\w ]{1,40})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Launchd:
    """The agents of one user; `folder` is their LaunchAgents, `uid` who they are."""

    folder: Path
    uid: int
    title: ClassVar[str] = "launchd"
    kills: ClassVar[bool] = False
    starts_on_request: ClassVar[bool] = False
    probe: ClassVar[Command | None] = None
    taken: ClassVar[Command | None] = None
    forget: ClassVar[tuple[Command, ...]] = ()
    cure: ClassVar[str] = (
        "launchd keeps programs of users who are logged in at the screen. Log in, "
        "or run `byok serve`."
    )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The agent's property list."""
        return (self.folder / f"{LABEL}.plist",)

    @property
    def check(self) -> Command | None:
        """Ask for the user's session."""
        return Command(("launchctl", "print", self._domain), seconds=15)

    @property
    def install(self) -> tuple[Command, ...]:
        """Load the agent anew, which starts it."""
        return self.restart

    @property
    def start(self) -> tuple[Command, ...]:
        """Load the agent if it is not, and start it if it does not run."""
        return (
            Command(("launchctl", "enable", self._target)),
            self._bootstrap(may_fail=True),
            Command(("launchctl", "kickstart", self._target)),
        )

    @property
    def stop(self) -> tuple[Command, ...]:
        """Unload the agent: it would be started again if it were only ended."""
        return (Command(("launchctl", "bootout", self._target), may_fail=True),)

    @property
    def restart(self) -> tuple[Command, ...]:
        """Unload the agent and load it again, because its file may have changed.

        launchd refuses to load what it has not quite unloaded, so that is tried again.
        """
        enable = Command(("launchctl", "enable", self._target))
        return (*self.stop, enable, self._bootstrap(tries=10))

    @property
    def remove(self) -> tuple[Command, ...]:
        """Unload the agent."""
        return self.stop

    @property
    def query(self) -> tuple[Command, ...]:
        """Ask for the agent, and for the list of those that are disabled."""
        return (
            Command(("launchctl", "print", self._target), may_fail=True),
            Command(("launchctl", "print-disabled", self._domain), may_fail=True),
        )

    @property
    def _domain(self) -> str:
        return f"gui/{self.uid}"

    @property
    def _target(self) -> str:
        return f"{self._domain}/{LABEL}"

    def _bootstrap(self, *, may_fail: bool = False, tries: int = 1) -> Command:
        arguments = ("launchctl", "bootstrap", self._domain, str(self.paths[0]))
        return Command(arguments, may_fail, tries=tries)

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
