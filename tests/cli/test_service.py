"""byok service, with a systemd that runs units and nothing else."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.cli.daemon_client import find_daemon
from byok.cli.service import follow_log
from byok.clients.service.base import ServiceState
from byok.core.daemon.instance import Instance
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.ports import free_port
from tests.fakes.service_manager import FakeSystemd


@pytest.fixture
def systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> Iterator[FakeSystemd]:
    if sys.platform != "linux":
        pytest.skip("the stand-in is one for systemd")
    fake = FakeSystemd(tmp_path / "programs")
    monkeypatch.setenv("PATH", fake.path)
    yield fake
    cli("service", "uninstall")


@pytest.fixture
def port() -> int:
    """A free port, in the settings."""
    number = free_port()
    box = '[upstreams.box]\nbase_url = "https://h/v1"\napi_key_env = "BOX"'
    write_settings(f"[server]\nport = {number}\n{box}\n")
    return number


def units() -> list[str]:
    folder = Path(find_units())
    return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def find_units() -> Path:
    from byok.clients.service.control import choose_system

    return choose_system(find_paths()).paths[0].parent


def test_service_lives_from_install_to_uninstall(
    systemd: FakeSystemd, port: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "BOX"):
        monkeypatch.setenv(name, "sk-not-for-the-unit")
    done = cli("service", "install")
    assert done.code == 0, done.err
    ready = f"byok runs as a service on http://127.0.0.1:{port}, from login on."
    assert done.out.splitlines()[-1] == ready
    assert f"ListenStream=127.0.0.1:{port}" in done.out
    assert "loginctl enable-linger" in done.err
    assert "keys in BOX, OPENAI_API_KEY." in done.err
    assert "sk-not-for-the-unit" not in done.out + done.err
    assert units() == ["byok.service", "byok.socket"]
    for file in find_units().iterdir():
        assert "sk-not-for-the-unit" not in file.read_text()
    daemon = find_daemon(find_paths())
    assert daemon is not None
    assert daemon.port == port

    facts = json.loads(cli("service", "status", "--json").out)
    assert (facts["installed"], facts["answers"], facts["by_hand"]) == (1, 1, 0)
    assert (facts["pid"], facts["port"]) == (daemon.pid, port)
    shown = cli("service", "status")
    assert shown.code == 0
    assert f"pid {daemon.pid}, http://127.0.0.1:{port}" in shown.out

    assert cli("service", "restart").code == 0
    after = find_daemon(find_paths())
    assert after is not None
    assert after.instance != daemon.instance

    assert cli("service", "stop").code == 0
    assert find_daemon(find_paths()) is None
    stopped = cli("service", "status")
    assert stopped.code == 3
    assert "does not answer" in stopped.out
    cure = "Start it: byok service start\n"
    for words in (("status",), ("restart",), ("capture", "status")):
        done = cli(*words)
        assert (done.code, cure in done.out + done.err) == (3, True), words
    started = cli("service", "start")
    assert started.out == f"byok is listening on http://127.0.0.1:{port}\n"

    gone = cli("service", "uninstall")
    assert gone.code == 0
    assert units() == []
    assert find_daemon(find_paths()) is None
    assert cli("service", "uninstall").out == "byok is not installed as a service.\n"
    assert "Start it: byok serve\n" in cli("service", "status").out


def test_connect_starts_the_service(systemd: FakeSystemd, port: int, cli: Cli) -> None:
    assert cli("service", "install").code == 0
    assert cli("service", "stop").code == 0
    done = cli("connect", "vscode")
    assert (done.code, f"http://127.0.0.1:{port}" in done.out) == (0, True)
    facts = json.loads(cli("service", "status", "--json").out)
    assert (facts["answers"], facts["by_hand"]) == (True, False)


def test_dry_run_shows_the_units_and_writes_nothing(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    done = cli("service", "install", "--dry-run")
    assert done.code == 0
    assert "    Type=notify" in done.out
    assert "    PrivateUsers=yes" in done.out
    assert units() == []
    assert not any("enable" in call for call in systemd.calls)


def test_without_systemd_nothing_is_written_and_a_cure_is_named(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    systemd.fail("systemctl")
    done = cli("service", "install")
    assert (done.code, done.out) == (1, "")
    assert "systemd does not run here" in done.err
    assert "wsl --shutdown" in done.err
    assert units() == []
    shown = cli("service", "install", "--dry-run")
    assert shown.code == 0
    assert "Type=notify" in shown.out
    assert "systemd does not run here" in shown.err


def test_daemon_that_was_started_by_hand_is_noticed(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    with daemon_thread():
        done = cli("service", "install")
        assert done.code == 75
        assert "byok runs already" in done.err
        assert "byok stop, then byok service install" in done.err
        shown = cli("service", "status")
        assert shown.code == 3
        assert "not installed" in shown.out
        assert "started by hand" in shown.out
    assert units() == []


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "byok.log"
    path.write_text("".join(f"line {n}\n" for n in range(100)))
    return path


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_the_end_of_a_log_is_read_and_what_is_added(log: Path) -> None:
    with closing(follow_log(log)) as read:
        assert next(read)[-2:] == ["line 98", "line 99"]
        assert next(read) == []
        add(log, "new\nhalf")
        assert next(read) == ["new"]
        add(log, " whole\n")
        assert next(read) == ["half whole"]
        add(log, "last\n")
        log.rename(log.with_name("byok.log.1"))
        assert next(read) == ["last"]
        log.write_text("first\n")
        assert next(read) == ["first"]


def test_command_shows_the_log_and_escapes_what_is_in_it(cli: Cli) -> None:
    log = find_paths().log
    assert "no log yet" in cli("service", "logs").err
    log.parent.mkdir(parents=True)
    log.write_bytes(b"one\ntwo \x1b[31m\n\xff\n")
    done = cli("service", "logs", "-n", "2")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("two ")
    assert "\x1b" not in done.out


DAEMON = Instance(pid=7, port=1, instance="x", started=0.0)


@pytest.mark.parametrize(
    ("state", "is_so"),
    [
        (ServiceState(running=True, pid=7), True),
        (ServiceState(running=True, pid=8), False),
        (ServiceState(running=True), True),  # Windows tells no pid
        (ServiceState(), False),
    ],
)
def test_daemon_is_the_one_of_the_service(state: ServiceState, is_so: bool) -> None:
    assert state.is_of(DAEMON) is is_so
