"""The units as text, and as systemd itself reads them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from byok.clients.service.base import CommandResult, Launch, ServiceState
from byok.clients.service.systems import Systemd, command_line
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


def test_install_enables_both_units_and_starts_them_on_the_port_of_now() -> None:
    commands = [" ".join(c.arguments) for c in Systemd(Path("/x")).install]
    assert commands[0] == "systemctl --user daemon-reload"
    assert commands[1] == "systemctl --user enable byok.socket byok.service"
    assert commands[-2:] == [
        "systemctl --user stop byok.socket byok.service",
        "systemctl --user start byok.socket byok.service",
    ]
    assert {c.split()[0] for c in commands} == {"systemctl"}


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
