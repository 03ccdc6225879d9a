"""byok with a real Secret Service: gnome-keyring on a D-Bus of the test's own.

Needs the programs dbus-daemon and gnome-keyring-daemon (apt: dbus, gnome-keyring).
"""

import asyncio
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from byok.settings.keys.keyring_store import KeyringStore
from tests.fakes.daemon import running_on_file, write_settings
from tests.fakes.dashboard import signed_in
from tests.fakes.patience import PATIENCE, START
from tests.fakes.program import run_byok
from tests.fakes.upstream import FakeUpstream

KEY = "sk-canary0123456789"
SECRETS = "org.freedesktop.secrets"
PROGRAMS = ("dbus-daemon", "gnome-keyring-daemon")
BUS_CONFIG = """
<busconfig>
  <type>session</type>
  <listen>unix:path={folder}/bus</listen>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_keyring,
    pytest.mark.skipif(
        sys.platform != "linux" or not all(map(shutil.which, PROGRAMS)),
        reason=f"no Secret Service to test with: install {' and '.join(PROGRAMS)}",
    ),
]


@dataclass
class Desktop:
    """A home, a D-Bus, and the keyring daemon on it."""

    home: Path
    keyring: "subprocess.Popen[str]"

    @property
    def keyring_files(self) -> Path:
        return self.home / ".local" / "share" / "keyrings"


@contextmanager
def process(
    *command: str, stdin: str = "", stdout: "int | IO[str]" = subprocess.DEVNULL
) -> Iterator["subprocess.Popen[str]"]:
    """Run a daemon for as long as the block lasts."""
    daemon = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert daemon.stdin is not None
    try:
        daemon.stdin.write(stdin)
        daemon.stdin.close()
        yield daemon
    finally:
        daemon.kill()
        daemon.wait(PATIENCE)
        if daemon.stdout is not None:
            daemon.stdout.close()


@contextmanager
def bus(folder: Path) -> Iterator[str]:
    """Run a D-Bus and give its address."""
    config = folder / "bus.conf"
    config.write_text(BUS_CONFIG.format(folder=folder))
    options = ("--nofork", "--nopidfile", "--print-address")
    command = ("dbus-daemon", f"--config-file={config}", *options)
    with process(*command, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        yield daemon.stdout.readline().strip()


@contextmanager
def keyring_daemon(
    address: str, *, password: str | None
) -> Iterator["subprocess.Popen[str]"]:
    """Run gnome-keyring; with a password its login keyring is open."""
    pytest.importorskip("jeepney")
    from jeepney import DBus, MatchRule  # type: ignore[import-untyped]
    from jeepney.io.blocking import (  # type: ignore[import-untyped]
        open_dbus_connection,
    )

    command = ["gnome-keyring-daemon", "--foreground", "--components=secrets"]
    if password is not None:
        command.append("--unlock")
    appears = MatchRule(type="signal", member="NameOwnerChanged")
    appears.add_arg_condition(0, SECRETS)
    with ExitStack() as stack:
        connection = stack.enter_context(open_dbus_connection(bus=address))
        queue = stack.enter_context(connection.filter(appears))
        connection.send_and_get_reply(DBus().AddMatch(appears))
        daemon = stack.enter_context(process(*command, stdin=password or ""))
        connection.recv_until_filtered(queue, timeout=START)
        yield daemon


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a D-Bus; its path is short, as those of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="byok-") as name:
        home = Path(name)
        home.joinpath("run").mkdir(mode=0o700)
        monkeypatch.setenv("HOME", name)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
        monkeypatch.setenv("BYOK_HOME", str(home / "byok"))
        for variable in ("PYTHON_KEYRING_BACKEND", "DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(variable, raising=False)
        for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            monkeypatch.delenv(variable, raising=False)
        with bus(home / "run") as address:
            monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
            yield home


@pytest.fixture
def desktop(session: Path) -> Iterator[Desktop]:
    """A session whose keyring is open."""
    address = os.environ["DBUS_SESSION_BUS_ADDRESS"]
    with keyring_daemon(address, password="pw") as daemon:
        yield Desktop(session, daemon)


def assert_unusable(done: "subprocess.CompletedProcess[str]", told: str) -> None:
    assert (done.returncode, done.stdout) == (78, "")
    assert told in done.stderr
    assert "--store vault" in done.stderr
    assert "Traceback" not in done.stderr
    assert KEY not in done.stderr


def files_with_the_key(home: Path) -> list[Path]:
    files = (path for path in home.rglob("*") if path.is_file())
    return [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.fixture
def no_library_warnings() -> Iterator[None]:
    """Let the library of the Secret Service leave sockets to the garbage collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def this_keyring(seconds: float = 60) -> KeyringStore:
    """Return the keyring of the test's own bus, not one that was found before."""
    from keyring.backends.SecretService import Keyring

    return KeyringStore(seconds=seconds, choose=Keyring)


@pytest.mark.case("F38")
async def test_secret_service_key_is_set_listed_used_and_removed(
    desktop: Desktop, fake: FakeUpstream, no_library_warnings: None
) -> None:
    write_settings(f'[upstreams.fake]\nbase_url = "{fake.url}"\nmodel = "m"\n')
    entry = f"fake@{fake.url.removesuffix('/v1')}"

    async with running_on_file(keyring=this_keyring()) as editor:
        page = await signed_in(editor)
        await page.call("key-set", {"name": "fake", "key": KEY, "address": fake.url})
        await editor.chat()
        assert fake.headers[-1]["Authorization"] == f"Bearer {KEY}"
        done = await asyncio.to_thread(run_byok, "keys", "list", "--json")
        assert [row["source"] for row in json.loads(done.stdout)] == ["OS keyring"]
        assert KEY not in done.stdout
        assert (await page.call("key-remove", {"name": "fake"}))["removed"]
        assert this_keyring().get(entry) is None

    done = await asyncio.to_thread(run_byok, "keys", "set", "fake", stdin=f"{KEY}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "keyring" in done.stdout
    assert KEY not in done.stdout
    assert this_keyring().get(entry) == KEY
    assert list(desktop.keyring_files.glob("*.keyring"))
    assert files_with_the_key(desktop.home) == []

    done = await asyncio.to_thread(run_byok, "keys", "remove", "fake")
    assert done.returncode == 0
    assert this_keyring().get(entry) is None


@pytest.mark.case("F38")
def test_secret_service_that_is_locked_is_reported_at_once(
    session: Path, no_library_warnings: None
) -> None:
    address = os.environ["DBUS_SESSION_BUS_ADDRESS"]
    with keyring_daemon(address, password="pw"):
        this_keyring().set("openai@https://api.openai.com", KEY)
    with keyring_daemon(address, password=None):
        done = run_byok("keys", "set", "openai", stdin=KEY)
        assert_unusable(done, "the OS keyring is locked")
        done = run_byok("keys", "remove", "openai")
        assert (done.returncode, done.stdout) == (78, "")
        assert "the OS keyring is locked" in done.stderr
        assert "unlock that" in done.stderr


@pytest.mark.case("F38")
def test_secret_service_that_does_not_answer_is_given_up(desktop: Desktop) -> None:
    desktop.keyring.send_signal(signal.SIGSTOP)
    done = run_byok("keys", "set", "openai", stdin=KEY)
    assert_unusable(done, "did not answer within 5 seconds")
    done = run_byok("keys", "list", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


@pytest.mark.case("F38")
def test_secret_service_without_a_bus_is_no_keyring(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    session.joinpath("run", "bus").unlink()  # libraries look there, too
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
    done = run_byok("keys", "set", "openai", stdin=KEY)
    assert_unusable(done, "no OS keyring is available here")
