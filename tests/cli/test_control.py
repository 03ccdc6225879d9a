"""byok stop, restart and reload; the daemon that a command starts."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from byok.cli.control import Starter, daemon_command, start_service
from byok.clients.service.control import choose_system, make_launch, write_files
from byok.core.daemon.instance import only_instance
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.patience import PATIENCE
from tests.fakes.program import serving_sync
from tests.fakes.rows import daemon_rows
from tests.fakes.service_manager import FakeSystemd

DEMO = ("--upstream", "demo", "--port", "0")


def facts() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(find_paths().daemon.read_text())
    return told


def test_stop_without_a_daemon_says_so(cli: Cli) -> None:
    stopped, restarted, reloaded = cli("stop"), cli("restart"), cli("reload")
    assert (stopped.code, stopped.out) == (0, "byok is not running.\n")
    assert (restarted.code, reloaded.code) == (3, 3)
    assert "byok serve" in restarted.err
    assert "when it starts" in reloaded.out


@pytest.mark.parametrize("command", ["stop", "reload"])
async def test_stop_sends_nothing_to_what_does_not_prove_to_be_the_daemon(
    cli: Cli, command: str
) -> None:
    """It may hold the lock and the port: without the proof it gets no token.

    An update may have left it running, so its process is named.
    """
    async with daemon_rows() as rows:
        rows.honest = False
        done = await asyncio.to_thread(cli, command)
        assert (rows.asked, rows.tokens) == ([], [])
    assert (done.code, done.out) == (1, "")
    assert f"kill {os.getpid()};" in done.err


def test_restart_keeps_the_options_and_stop_waits_for_the_end(cli: Cli) -> None:
    with serving_sync(*DEMO, "--model", "byok:demo:other") as (process, _):
        before = facts()
        done = cli("restart")
        assert (done.code, done.err) == (0, "")
        after = facts()
        assert after["instance"] != before["instance"]
        assert done.out == f"byok is listening on http://127.0.0.1:{after['port']}\n"
        assert json.loads(cli("status", "--json").out)["model"] == "byok:demo:other"
        assert process.stdout is not None
        assert process.stdout.readline() == done.out
        done = cli("stop")
        assert (done.code, done.err) == (0, "")
        assert done.out == f"byok has ended (pid {after['pid']}).\n"
        with only_instance(find_paths()):  # its lock is free
            pass
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_restart_is_refused_with_settings_that_serve_would_refuse(cli: Cli) -> None:
    with daemon_thread():
        before = facts()
        write_settings("[server]\nprot = 1\n")
        done = cli("restart")
        assert (done.code, done.out) == (78, "")
        assert "Did you mean port?" in done.err
        assert facts() == before


def test_reload_applies_settings_and_names_what_needs_a_restart(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__DEMO__TYPE", "demo")
    with daemon_thread(upstream=""):
        file = write_settings(
            '[routing]\ndefault = "byok:demo:new"\n[limits]\nstreams = 7\n'
        )
        done = cli("reload")
        assert (done.code, done.out) == (0, f"byok uses the settings of {file}.\n")
        assert done.err == "These need a restart (byok restart): limits.streams\n"
        shown = cli("status").out
        assert "model: byok:demo:new\n" in shown
        assert "need a restart (byok restart): limits.streams" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="systemd")
def test_service_that_does_not_start_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    systemd = FakeSystemd(tmp_path / "programs")
    systemd.fail("systemctl --user start")
    monkeypatch.setenv("PATH", systemd.path)
    paths = find_paths()
    write_files(list(choose_system(paths).render(make_launch(paths, 8317))))
    assert start_service(paths) is None
    assert "byok's service did not start" in capsys.readouterr().err


def ended(starter: Starter) -> int:
    assert starter._process is not None
    return starter._process.wait(PATIENCE)


def test_start_daemon_in_its_own_folder_and_session(tmp_path: Path) -> None:
    script = (
        "import os, pathlib; "
        "pathlib.Path('new').write_text(f'{os.getcwd()} {os.getsid(0) == os.getpid()}')"
        "; os.rename('new', 'ran')"
    )
    home = tmp_path / "state"
    starter = Starter([sys.executable, "-c", script], home)
    starter.start()
    assert ended(starter) == 0
    assert (home / "ran").read_text() == f"{home} True"


def test_start_daemon_twice_waits_and_reports_how_the_first_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    script = "import pathlib, sys; pathlib.Path('ran').touch(); sys.exit(78)"
    command = [sys.executable, "-c", script]
    starter = Starter(command, tmp_path, pause=60.0, clock=lambda: now)
    starter.start()
    assert ended(starter) == 78
    (tmp_path / "ran").unlink()
    now = 59.0
    starter.start()
    assert not (tmp_path / "ran").exists()
    assert caplog.messages == []
    now = 60.0
    starter.start()
    assert ended(starter) == 78
    assert (tmp_path / "ran").exists()
    assert "exit 78" in caplog.text


def test_start_daemon_with_the_same_settings_and_no_import_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = daemon_command(Path("my.toml"))
    assert command[:5] == [sys.executable, "-P", "-m", "byok", "serve"]
    assert command[5:] == ["--ensure", "--config", str(tmp_path / "my.toml")]
    assert daemon_command(None)[5:] == ["--ensure"]
