"""byok upgrade, and byok uninstall."""

import sys
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.settings_files import COMMENTS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and a search path without the user's own `byok`."""
    home = tmp_path / "me"
    (home / ".config" / "Code" / "User").mkdir(parents=True)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return home


def editor_settings(home: Path) -> Path:
    return home / ".config" / "Code" / "User" / "settings.json"


def connect(cli: Cli, home: Path) -> None:
    editor_settings(home).write_text(COMMENTS, "utf-8")
    with daemon_thread():
        assert cli("connect", "vscode", "--write", "--yes").code == 0
    assert editor_settings(home).read_text("utf-8") != COMMENTS


def files_of_byok() -> set[str]:
    paths = find_paths()
    return {path.name for folder in paths.folders for path in folder.glob("*")}


def test_uninstall_leaves_what_is_not_byoks_and_gives_settings_back(
    cli: Cli, home: Path
) -> None:
    connect(cli, home)
    paths = find_paths()
    (paths.state_dir / "client_settings.lock").unlink()  # earlier versions had none
    outside = home / "work.txt"
    outside.write_text("mine")
    (paths.state_dir / "diary.txt").write_text("mine")
    (paths.data_dir / "vectors").mkdir(parents=True, exist_ok=True)
    (paths.data_dir / "vectors" / "link").symlink_to(outside)
    (paths.data_dir / "data.db.damaged-1").write_bytes(b"x")
    done = cli("uninstall", "--yes", "--keep-keys")
    assert done.code == 0, done.err
    assert editor_settings(home).read_text("utf-8") == COMMENTS
    assert outside.read_text() == "mine"
    left = {path.name for path in paths.state_dir.iterdir()}
    assert left == {"diary.txt"}
    assert str(paths.state_dir) in done.err
    assert not paths.data_dir.exists()


def test_uninstall_shows_everything_and_does_nothing_without_consent(
    cli: Cli, home: Path
) -> None:
    connect(cli, home)
    before, written = files_of_byok(), editor_settings(home).read_bytes()
    shown = cli("uninstall", "--dry-run", "--keep-keys")
    assert all(name in shown.out for name in ("token", "settings.json"))
    refused = cli("uninstall", "--keep-keys")  # there is no terminal to ask at
    assert (shown.code, refused.code) == (0, 78)
    assert (files_of_byok(), editor_settings(home).read_bytes()) == (before, written)


def test_uninstall_keeps_settings_and_vault_where_asked(cli: Cli, home: Path) -> None:
    connect(cli, home)
    paths = find_paths()
    write_settings("[server]\n")
    paths.vault.parent.mkdir(exist_ok=True, parents=True)
    paths.vault.write_text("{}")
    assert cli("uninstall", "--yes", "--keep-keys", "--keep-settings").code == 0
    assert (paths.config.exists(), paths.vault.exists()) == (True, True)
    assert not paths.token.exists()


def test_upgrade_says_what_it_would_run(cli: Cli) -> None:
    done = cli("upgrade", "--dry-run")
    assert (done.code, "git" in done.out) == (0, True)
    assert cli("upgrade", "--extra", "otel", "--dry-run").code == 0
    assert cli("upgrade", "--extra", "nothing").code == 78
