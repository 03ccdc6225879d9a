"""Starting the service in place of a daemon."""

import sys
from pathlib import Path

import pytest

from byok.cli.ensure_service import (
    is_started_by_requests,
    start_service,
    wait_for_daemon,
)
from byok.daemon_client.find import find_daemon
from byok.platform.paths import find_paths
from byok.service.choose import choose_system, make_launch
from byok.service.files import write_files
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.systemctl import FakeSystemd

linux = pytest.mark.skipif(sys.platform != "linux", reason="systemd")


def install_only() -> None:
    """Write the units, and run nothing."""
    paths = find_paths()
    write_files(list(choose_system(paths).render(make_launch(paths, 8317))))


def test_without_a_service_nothing_is_started() -> None:
    assert start_service(find_paths()) is None
    assert not is_started_by_requests(find_paths())


@linux
def test_service_of_this_home_is_known(cli: Cli) -> None:
    assert "Start it: byok serve\n" in cli("status").out
    install_only()
    assert is_started_by_requests(find_paths())
    assert "Start it: byok service start\n" in cli("status").out


@linux
def test_service_that_does_not_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    systemd = FakeSystemd(folder)
    systemd.fail("systemctl --user start")
    monkeypatch.setenv("PATH", systemd.path)
    install_only()
    assert start_service(find_paths()) is None
    assert "byok's service did not start" in capsys.readouterr().err


def test_running_daemon_is_found_at_once() -> None:
    with daemon_thread():
        daemon = find_daemon(find_paths())
        assert daemon is not None
        assert wait_for_daemon(find_paths(), other_than="another") == daemon
