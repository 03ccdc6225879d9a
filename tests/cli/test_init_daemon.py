"""byok init: a daemon that runs is told; another one is started if wanted."""

import socket
import sys
from pathlib import Path

import click
import pytest

from byok.cli.asker import NobodyAsker, YesAsker
from byok.cli.init_steps import can_install_service, run_daemon
from byok.core.daemon.instance import Instance
from byok.core.errors import CannotStart
from byok.core.platform.paths import Paths, find_paths
from tests.fakes.answers import ScriptedPerson
from tests.fakes.daemon_thread import daemon_thread

NOBODY = NobodyAsker("byok init --yes")


def run(asker: ScriptedPerson | YesAsker | NobodyAsker, port: int = 0) -> object:
    return run_daemon(
        find_paths(), port, "demo", asker, can_install=lambda paths: False
    )


def test_a_running_daemon_reads_the_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = find_paths().config
    path.parent.mkdir(parents=True)
    with daemon_thread(upstream="") as daemon:
        path.write_text("[upstreams.demo]\n")
        path.chmod(0o600)
        found = run(ScriptedPerson())
        assert isinstance(found, Instance)
        assert found.port == int(daemon.url.rpartition(":")[2])
    assert "byok runs, and uses byok:demo:echo." in capsys.readouterr().out


def test_a_daemon_that_uses_another_upstream_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with daemon_thread(upstream="demo"):
        run_daemon(find_paths(), 0, "other", NOBODY, can_install=lambda paths: False)
    assert "It does not use other by itself: chosen by --upstream" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("asker", [ScriptedPerson(False), NOBODY])
def test_no_daemon_is_started_unasked(
    asker: ScriptedPerson | NobodyAsker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(asker) is None
    assert "byok serve" in capsys.readouterr().out


def test_ctrl_c_at_the_question_starts_nothing() -> None:
    with pytest.raises(click.Abort):
        run(ScriptedPerson(None))
    assert not find_paths().daemon.exists()


def test_a_service_is_offered_first_where_there_can_be_one() -> None:
    person = ScriptedPerson(False, False)
    seen: list[Paths] = []

    def can_install(paths: Paths) -> bool:
        seen.append(paths)
        return True

    assert not run_daemon(find_paths(), 0, "demo", person, can_install=can_install)
    assert ["service" in question for question in person.asked] == [True, False]
    assert seen == [find_paths()]


def test_a_port_that_is_taken_is_told_before_anything_starts() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(CannotStart),
    ):
        run(YesAsker(), server.getsockname()[1])
    assert not find_paths().daemon.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is found in PATH")
def test_a_machine_without_a_service_manager_is_offered_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert can_install_service(find_paths()) is False
