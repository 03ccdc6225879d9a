"""The launchd agent as text, and what launchctl is told and says."""

import plistlib
from pathlib import Path

import pytest

from byok.clients.service.base import CommandResult, ServiceState, find_mark
from byok.clients.service.systems import LABEL, Launchd
from tests.fakes.launches import HARD_NAMES, make_launch

AGENTS = Path("/Users/u/Library/LaunchAgents")
SYSTEM = Launchd(AGENTS, 501)


@pytest.mark.parametrize("name", HARD_NAMES)
def test_agent_runs_what_installed_it(name: str) -> None:
    launch = make_launch(name)
    [file] = SYSTEM.render(launch)
    assert file.path == AGENTS / f"{LABEL}.plist"
    values = plistlib.loads(file.content.encode())
    assert values["Label"] == LABEL
    assert values["ProgramArguments"] == launch.command("serve")
    assert values["EnvironmentVariables"] == launch.environment
    assert (values["RunAtLoad"], values["Umask"]) == (True, 0o077)
    assert values["KeepAlive"] == {"SuccessfulExit": False}
    assert find_mark(file.content) == launch.mark


def test_commands_name_the_agent_of_this_user() -> None:
    target, plist = f"gui/501/{LABEL}", str(SYSTEM.paths[0])
    assert [c.arguments for c in SYSTEM.install] == [
        ("launchctl", "bootout", target),
        ("launchctl", "enable", target),
        ("launchctl", "bootstrap", "gui/501", plist),
    ]
    assert [c.arguments for c in SYSTEM.start] == [
        ("launchctl", "enable", target),
        ("launchctl", "bootstrap", "gui/501", plist),
        ("launchctl", "kickstart", target),
    ]
    assert [c.arguments for c in SYSTEM.stop] == [("launchctl", "bootout", target)]
    assert SYSTEM.remove == SYSTEM.stop
    assert SYSTEM.check is not None
    assert SYSTEM.check.arguments == ("launchctl", "print", "gui/501")


def test_agent_that_is_just_ending_is_loaded_again_later() -> None:
    bootout, _, bootstrap = SYSTEM.install
    assert bootout.may_fail
    assert not bootstrap.may_fail
    assert bootstrap.tries > 1


RUNS = """gui/501/byok.daemon = {
\tactive count = 1
\tpath = /Users/u/Library/LaunchAgents/byok.daemon.plist
\tstate = running

\tprogram = /opt/byok/bin/python
\tpid = 4711
\timmediate reason = speculative
\tlast exit code = (never exited)
}
"""
LOADED = "gui/501/byok.daemon = {\n\tstate = not running\n\tlast exit code = 78\n}\n"


@pytest.mark.parametrize(
    ("printed", "code", "disabled", "state"),
    [
        (RUNS, 0, "", ServiceState(True, True, 4711, "running")),
        (LOADED, 0, "", ServiceState(True, False, 0, "not running")),
        ("", 113, "", ServiceState(True)),
        ("", 113, f'\t"{LABEL}" => disabled\n', ServiceState(False)),
        (RUNS, 0, f'\t"{LABEL}" => true\n', ServiceState(False, True, 4711, "running")),
    ],
)
def test_state_is_read(
    printed: str, code: int, disabled: str, state: ServiceState
) -> None:
    results = [CommandResult(code, printed), CommandResult(0, disabled)]
    assert SYSTEM.read_state(results) == state
