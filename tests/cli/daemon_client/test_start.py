"""A daemon that is started in the background."""

import sys
from pathlib import Path

import pytest

from byok.cli.control import Starter, daemon_command
from tests.fakes.patience import PATIENCE


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
