"""byok service, with a systemd that runs units and nothing else."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from byok.cli.daemon_client.daemon import find_daemon
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.systemctl import FakeSystemd

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the stand-in is one for systemd"
)


@pytest.fixture
def systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> Iterator[FakeSystemd]:
    folder = tmp_path / "programs"
    folder.mkdir()
    fake = FakeSystemd(folder)
    monkeypatch.setenv("PATH", fake.path)
    yield fake
    cli("service", "uninstall")


@pytest.fixture
def port() -> int:
    """A free port, in the settings."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        number: int = server.getsockname()[1]
    config = find_paths().config
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[server]\nport = {number}\n")
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
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-the-unit")
    done = cli("service", "install")
    assert done.code == 0, done.err
    ready = f"byok runs as a service on http://127.0.0.1:{port}, from login on."
    assert done.out.splitlines()[-1] == ready
    assert f"ListenStream=127.0.0.1:{port}" in done.out
    assert "loginctl enable-linger" in done.err
    assert "keys in OPENAI_API_KEY" in done.err
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
    started = cli("service", "start")
    assert started.out == f"byok is listening on http://127.0.0.1:{port}\n"

    gone = cli("service", "uninstall")
    assert gone.code == 0
    assert units() == []
    assert find_daemon(find_paths()) is None
    assert cli("service", "uninstall").out == "byok is not installed as a service.\n"
    assert "Start it: byok serve\n" in cli("service", "status").out


def test_ensure_starts_the_service_and_no_second_daemon(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    assert cli("service", "install").code == 0
    ended = cli("stop")
    assert "service starts it again at the next request" in ended.err
    done = cli("serve", "--ensure")
    assert done.code == 0, done.err
    assert done.out == f"byok is listening on http://127.0.0.1:{port}\n"
    assert systemd.calls[-1] == "systemctl --user start byok.socket byok.service"
    facts = json.loads(cli("service", "status", "--json").out)
    assert (facts["answers"], facts["by_hand"]) == (True, False)


@pytest.mark.parametrize("client", ["cli", "vscode"])
def test_connect_starts_the_service(
    systemd: FakeSystemd, port: int, cli: Cli, client: str
) -> None:
    assert cli("service", "install").code == 0
    assert cli("service", "stop").code == 0
    done = cli("connect", client)
    assert (done.code, f"http://127.0.0.1:{port}" in done.out) == (0, True)
    facts = json.loads(cli("service", "status", "--json").out)
    assert (facts["answers"], facts["by_hand"]) == (True, False)


def test_serve_beside_the_service_names_it(
    systemd: FakeSystemd, port: int, cli: Cli, tmp_path: Path
) -> None:
    assert cli("service", "install").code == 0
    assert cli("service", "stop").code == 0
    with closing(socket.create_server(("127.0.0.1", port))):
        done = cli("serve")
    assert done.code == 69
    assert "byok service status" in done.err


def test_dry_run_shows_the_units_and_writes_nothing(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    done = cli("service", "install", "--dry-run")
    assert done.code == 0
    assert "    Type=notify" in done.out
    assert "    PrivateUsers=yes" in done.out
    assert units() == []
    assert not any("enable" in call for call in systemd.calls)


def test_units_have_no_sandbox_where_the_system_has_none(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    systemd.fail("systemd-run")
    done = cli("service", "install", "--dry-run")
    assert "PrivateUsers" not in done.out
    assert "    NoNewPrivileges=yes" in done.out


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


def test_taken_port_is_said_before_anything_is_written(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    with closing(socket.create_server(("127.0.0.1", port))):
        done = cli("service", "install")
    assert done.code == 69
    assert str(port) in done.err
    assert units() == []


def test_port_zero_is_none_for_a_service(systemd: FakeSystemd, cli: Cli) -> None:
    config = find_paths().config
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[server]\nport = 0\n")
    done = cli("service", "install")
    assert done.code == 78
    assert "fixed port" in done.err
    assert units() == []


def test_unit_of_somebody_else_is_kept(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    unit = find_units() / "byok.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    for command in ("install", "uninstall", "start", "status"):
        done = cli("service", command)
        assert done.code == 78
        assert "was not written by byok" in done.err
    assert units() == ["byok.service"]
    unit.unlink()


def test_own_lines_for_the_unit_are_named_at_the_end(
    systemd: FakeSystemd, port: int, cli: Cli
) -> None:
    assert cli("service", "install").code == 0
    own = find_units() / "byok.service.d"
    own.mkdir()
    assert str(own) in cli("service", "uninstall").err
    assert own.is_dir()


@pytest.mark.parametrize("command", ["start", "stop", "restart"])
def test_what_is_not_installed_is_not_controlled(
    command: str, systemd: FakeSystemd, cli: Cli
) -> None:
    done = cli("service", command)
    assert done.code == 1
    assert "byok service install" in done.err
    assert systemd.calls == []
