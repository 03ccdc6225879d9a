"""Services of each system as text, what is told of them, and how systemd reads it."""

import ast
import os
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import list2cmdline
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from byok.clients.service.base import CommandResult, Launch, ServiceState, find_mark
from byok.clients.service.systems import (
    FILE,
    LABEL,
    Launchd,
    Systemd,
    WindowsTasks,
    command_line,
)
from tests.fakes.launches import HARD_NAMES, make_launch

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd-analyze is not installed"
)
MOST_EXPOSED = "30"  # tenths; systemd calls up to 4.9 OK, a bare unit has 9.x


def render(folder: Path, launch: Launch) -> dict[str, str]:
    return {file.path.name: file.content for file in Systemd(folder).render(launch)}


def lines(content: str) -> list[str]:
    return [line for line in content.splitlines() if line and line[0] != "#"]


def test_socket_is_the_configured_port_on_loopback_only() -> None:
    socket = render(Path("/x"), make_launch())["byok.socket"]
    listen = [line for line in lines(socket) if line.startswith("Listen")]
    assert listen == ["ListenStream=127.0.0.1:8317", "ListenStream=[::1]:8317"]
    assert "FileDescriptorName=byok" in lines(socket)


@pytest.mark.parametrize(
    ("folder", "is_private"),
    [("/tmp/byok", False), ("/tmpfs/b", True), ("/home/b", True)],
)
def test_service_sees_its_own_folders_below_tmp(folder: str, is_private: bool) -> None:
    launch = replace(make_launch(), folders=(Path(folder),))
    service = lines(render(Path("/x"), launch)["byok.service"])
    assert ("PrivateTmp=yes" in service) is is_private
    [place] = [line for line in service if line.startswith("ReadWritePaths=")]
    assert f"-{folder}" in place


def test_service_without_a_sandbox_needs_no_namespaces() -> None:
    service = lines(render(Path("/x"), make_launch(sandbox=False))["byok.service"])
    keys = {line.partition("=")[0] for line in service}
    assert not keys & {"PrivateUsers", "PrivateTmp", "ProtectSystem", "ReadWritePaths"}
    assert "CapabilityBoundingSet" not in keys  # it would need a capability
    assert {"NoNewPrivileges", "SystemCallFilter", "UMask"} <= keys


def test_probe_has_the_options_of_the_unit() -> None:
    system = Systemd(Path("/x"))
    assert system.probe is not None
    tried = {a.removeprefix("--property=") for a in system.probe.arguments if "=" in a}
    service = set(lines(render(Path("/x"), make_launch())["byok.service"]))
    assert {option for option in tried if option[0].isupper()} <= service
    assert {"PrivateUsers=yes", "ProtectSystem=strict"} <= tried


def test_program_with_quotes_in_its_path_is_started_by_env() -> None:
    assert command_line(["/o'b/python", "-P"]) == ':"/usr/bin/env" "/o\'b/python" "-P"'


RUNS = """LoadState=loaded
UnitFileState=enabled
ActiveState=active
SubState=running
MainPID=4711
"""
ENDED = "UnitFileState=disabled\nActiveState=inactive\nSubState=dead\nMainPID=0\n"


@pytest.mark.parametrize(
    ("printed", "socket", "state"),
    [
        (RUNS, "active", ServiceState(True, True, 4711, "active (running)", True)),
        (ENDED, "active", ServiceState(False, False, 0, "inactive (dead)", True)),
        ("MainPID=x\nnonsense", "", ServiceState(detail=" ()")),
    ],
)
def test_state_is_read(printed: str, socket: str, state: ServiceState) -> None:
    results = [CommandResult(0, printed), CommandResult(0, f"ActiveState={socket}\n")]
    assert Systemd(Path("/x")).read_state(results) == state


def analyze(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    assert ANALYZE
    run_time = folder / "run"
    run_time.mkdir(mode=0o700, exist_ok=True)
    environ = {"PATH": os.defpath, "HOME": str(folder)}
    return subprocess.run(
        [ANALYZE, *arguments],
        env={**environ, "XDG_RUNTIME_DIR": str(run_time), "SYSTEMD_COLORS": "0"},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def write(folder: Path, launch: Launch) -> list[str]:
    for file in Systemd(folder).render(launch):
        file.path.write_text(file.content, "utf-8")
    return [f"./{path.name}" for path in Systemd(folder).paths]


def copy_of_python(folder: Path) -> None:
    """Put a program there: systemd looks whether it is one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "python").symlink_to(sys.executable)


@needs_systemd
@pytest.mark.slow
@pytest.mark.parametrize("sandbox", [True, False])
@pytest.mark.parametrize("name", HARD_NAMES)
def test_systemd_accepts_the_units(name: str, sandbox: bool, tmp_path: Path) -> None:
    copy_of_python(tmp_path / name)
    units = write(tmp_path, make_launch(name, tmp_path, sandbox=sandbox))
    done = analyze(tmp_path, "verify", "--user", *units)
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
@pytest.mark.slow
def test_systemd_calls_the_service_well_protected(tmp_path: Path) -> None:
    copy_of_python(tmp_path / "plain")
    service = write(tmp_path, make_launch("plain", tmp_path))[1]
    limit = f"--threshold={MOST_EXPOSED}"
    done = analyze(tmp_path, "security", "--user", "--offline=true", limit, service)
    if "unrecognized option" in done.stderr or "Failed to init" in done.stderr:
        pytest.skip(f"this systemd-analyze cannot: {done.stderr}")
    assert re.search(r"exposure level for byok.service: \d\.\d", done.stdout)
    assert done.returncode == 0, done.stdout


AGENTS = Path("/Users/u/Library/LaunchAgents")
LAUNCHD = Launchd(AGENTS, 501)


@pytest.mark.parametrize("name", HARD_NAMES)
def test_agent_runs_what_installed_it(name: str) -> None:
    launch = make_launch(name)
    [file] = LAUNCHD.render(launch)
    assert file.path == AGENTS / f"{LABEL}.plist"
    values = plistlib.loads(file.content.encode())
    assert values["Label"] == LABEL
    assert values["ProgramArguments"] == launch.command("serve")
    assert values["EnvironmentVariables"] == launch.environment
    assert (values["RunAtLoad"], values["Umask"]) == (True, 0o077)
    assert values["KeepAlive"] == {"SuccessfulExit": False}
    assert find_mark(file.content) == launch.mark


def test_agent_that_is_just_ending_is_loaded_again_later() -> None:
    bootout, _, bootstrap = LAUNCHD.install
    assert bootout.may_fail
    assert not bootstrap.may_fail
    assert bootstrap.tries > 1


AGENT_RUNS = """gui/501/byok.daemon = {
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
        (AGENT_RUNS, 0, "", ServiceState(True, True, 4711, "running")),
        (LOADED, 0, "", ServiceState(True, False, 0, "not running")),
        ("", 113, "", ServiceState(True)),
        ("", 113, f'\t"{LABEL}" => disabled\n', ServiceState(False)),
        (
            AGENT_RUNS,
            0,
            f'\t"{LABEL}" => true\n',
            ServiceState(False, True, 4711, "running"),
        ),
    ],
)
def test_state_of_an_agent_is_read(
    printed: str, code: int, disabled: str, state: ServiceState
) -> None:
    results = [CommandResult(code, printed), CommandResult(0, disabled)]
    assert LAUNCHD.read_state(results) == state


TASKS = WindowsTasks(Path("/state"), "DOMAIN\\u & v")
NAMES = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}


def windows_launch(name: str, environment: dict[str, str]) -> Launch:
    python = f"C:\\Program Files\\{name}\\Scripts\\python.exe"
    return Launch(python, ("--config", f"C:\\{name}"), environment, (), 1, "mark")


def text_of(content: str, path: str) -> str:
    # The declaration names the encoding of the file, not that of this text.
    tree = ElementTree.fromstring(content.partition("?>")[2])
    return tree.findtext(path, "", NAMES)


@pytest.mark.parametrize("name", HARD_NAMES)
def test_task_runs_what_installed_it_without_a_window(name: str) -> None:
    [file] = TASKS.render(windows_launch(name, {}))
    run = "t:Actions/t:Exec/t:"
    program = text_of(file.content, f"{run}Command")
    assert program == f"C:\\Program Files\\{name}\\Scripts\\pythonw.exe"
    assert text_of(file.content, f"{run}Arguments") == list2cmdline(
        ["-P", "-m", "byok", "serve", "--config", f"C:\\{name}"]
    )


@pytest.mark.parametrize("name", HARD_NAMES)
def test_task_sets_byok_home_itself(name: str) -> None:
    environment = {"BYOK_HOME": f"D:\\{name}"}
    [file] = TASKS.render(windows_launch(name, environment))
    given = text_of(file.content, "t:Actions/t:Exec/t:Arguments")
    code = f"import os; os.environ.update({environment!r}); "
    code += "from byok.cli import main; main()"
    ast.parse(code)
    expected = ["-P", "-c", code, "serve", "--config", f"C:\\{name}"]
    assert given == list2cmdline(expected)


def test_task_starts_at_logon_without_an_administrator() -> None:
    [file] = TASKS.render(make_launch())
    assert (file.path, file.encoding) == (Path("/state") / FILE, "utf-16")
    assert file.content.startswith('<?xml version="1.0" encoding="UTF-16"?>')
    facts = {
        "t:Triggers/t:LogonTrigger/t:UserId": TASKS.user,
        "t:Principals/t:Principal/t:UserId": TASKS.user,
        "t:Principals/t:Principal/t:LogonType": "InteractiveToken",
        "t:Principals/t:Principal/t:RunLevel": "LeastPrivilege",
        "t:Settings/t:Hidden": "true",
        "t:Settings/t:ExecutionTimeLimit": "PT0S",
        "t:Settings/t:MultipleInstancesPolicy": "IgnoreNew",
        "t:Settings/t:RestartOnFailure/t:Count": "5",
        "t:Settings/t:StopIfGoingOnBatteries": "false",
    }
    assert {path: text_of(file.content, path) for path in facts} == facts
    assert find_mark(file.content) == make_launch().mark


ROW = (
    '"PC","\\byok","N/A","{status}","Interactive only","11/22/2026 9:00:00 AM",'
    '"{code}","byok","C:\\x\\pythonw.exe -P -m byok serve"\r\n'
)
XML = "<Task><Settings><Enabled>{}</Enabled></Settings></Task>"


@pytest.mark.parametrize(
    ("row", "enabled", "state"),
    [
        (ROW.format(status="Running", code=267009), "true", ServiceState(True, True)),
        (ROW.format(status="Wird ausgeführt", code=267009), "true", (True, True)),
        (ROW.format(status="Ready", code=0), "true", (True, False)),
        (ROW.format(status="Running", code="0x41301"), "false", (False, True)),
        ("", "true", (True, False)),
    ],
)
def test_state_of_a_task_is_read_whatever_the_language(
    row: str, enabled: str, state: tuple[bool, bool]
) -> None:
    results = [CommandResult(0, row), CommandResult(0, XML.format(enabled))]
    assert TASKS.read_state(results)[:2] == state[:2]
