"""The daemon under the options of byok.service, where a systemd runs for this user.

A transient unit has them: nothing of the user's own units is read or written.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from byok.clients.service.base import Command, run
from byok.clients.service.control import make_launch
from byok.clients.service.systems import Systemd
from tests.fakes.patience import PATIENCE
from tests.fakes.program import ROOT, run_byok
from tests.fakes.project import make_project
from tests.fakes.raw import ask, filled, request

# A transient unit has them otherwise, or not at all.
LEFT_OUT = ("Exec", "Environment", "Restart", "Timeout", "WorkingDirectory")


def runs_for_this_user() -> bool:
    if shutil.which("systemd-run") is None:
        return False
    show = Command(("systemctl", "--user", "show-environment"), may_fail=True)
    return run(show).exit_code == 0


pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not runs_for_this_user(),
        reason="no systemd runs for this user",
    ),
    pytest.mark.skipif(
        ROOT.is_relative_to(tempfile.gettempdir()),
        reason="a service has a /tmp of its own, and this clone is there",
    ),
]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home outside /tmp."""
    place = f"/run/user/{os.getuid()}"
    with tempfile.TemporaryDirectory(prefix="byok-test-", dir=place) as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        monkeypatch.setenv("BYOK_HOME", str(home))
        yield home


def options(home: Path, *, sandbox: bool) -> list[str]:
    """Return the options of the unit's section [Service] for systemd-run."""
    from byok.core.platform.paths import find_paths

    launch = make_launch(find_paths(), 8317, sandbox=sandbox)
    content = Systemd(home).render(launch)[1].content
    section = content.partition("[Service]")[2].partition("[Install]")[0]
    lines = [ln for ln in section.splitlines() if "=" in ln and ln[0] != "#"]
    kept = [line.replace('"', "") for line in lines if not line.startswith(LEFT_OUT)]
    return [f"--property={line}" for line in kept]


@contextmanager
def service(home: Path, *, sandbox: bool) -> Iterator[str]:
    """Run the daemon as a transient unit; give its name."""
    unit = f"byok-test-{os.getpid()}.service"
    ways = ("--user", "--quiet", "--collect", f"--unit={unit}")
    command = (sys.executable, "-P", "-m", "byok", "serve", "--port", "0")
    run(
        Command(
            (
                *("systemd-run", *ways, f"--setenv=BYOK_HOME={home}"),
                *(f"--setenv=PYTHONPATH={ROOT}", f"--setenv=PATH={os.environ['PATH']}"),
                *options(home, sandbox=sandbox),
                *(*command, "--upstream", "demo"),
            ),
            seconds=PATIENCE,
        )
    )
    try:
        yield unit
    finally:
        run(Command(("systemctl", "--user", "stop", unit), seconds=PATIENCE))


@pytest.mark.parametrize("sandbox", [True, False])
async def test_daemon_works_under_the_options_of_the_unit(
    home: Path, sandbox: bool
) -> None:
    probe = Systemd(home).probe
    assert probe is not None
    if sandbox and run(Command(probe.arguments, may_fail=True)).exit_code:
        pytest.skip("users may have no namespaces here")
    project = make_project(home.parent / "bakery")
    with service(home, sandbox=sandbox) as unit:
        port = json.loads((home / "state/daemon.json").read_bytes())["port"]
        token = (home / "state/token").read_text().strip()
        hello = filled(request(body=b'{"message": "Hello!"}'), port, token)
        assert "Hello!" in (await ask(port, hello, PATIENCE)).json["text"]
        env = {"BYOK_HOME": str(home)}
        added = run_byok("index", "add", project, env=env)
        assert "files indexed" in added.stdout, added.stderr
        found = run_byok("search", "--all", "where is the oven", env=env)
        assert "Path: " in found.stdout, found.stderr
        assert run_byok("restart", env=env).returncode == 0
        state = run(Command(("systemctl", "--user", "show", unit))).out.splitlines()
    assert "ActiveState=active" in state
    assert "NoNewPrivileges=yes" in state
    assert (f"PrivateUsers={'yes' if sandbox else 'no'}") in state
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_session_bus_is_within_reach_of_the_sandbox(home: Path) -> None:
    """Without it there would be no keyring."""
    busctl = shutil.which("busctl")
    if busctl is None:
        pytest.skip("busctl is not installed")
    list_names = (busctl, "--user", "call", "org.freedesktop.DBus")
    call = ("/org/freedesktop/DBus", "org.freedesktop.DBus", "ListNames")
    ways = ("--user", "--quiet", "--wait", "--collect", "--pipe")
    given = [o for o in options(home, sandbox=True) if "=Type=" not in o]
    given = [option for option in given if "NotifyAccess" not in option]
    done = subprocess.run(
        ["systemd-run", *ways, *given, *list_names, *call],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode == 226:
        pytest.skip("users may have no namespaces here")
    assert "org.freedesktop.DBus" in done.stdout, done.stderr
