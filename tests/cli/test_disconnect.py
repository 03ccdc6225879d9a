"""byok connect --write, and byok disconnect."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.server.run import Daemon
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
from tests.fakes.settings_files import COMMENTS

RAW = b"\xef\xbb\xbf" + COMMENTS.replace("\n", "\r\n").encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "me"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in (
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        "OPENCODE_CONFIG",
        "SSH_CONNECTION",
        "SSH_TTY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")
    return home


@pytest.fixture(autouse=True)
def daemon(home: Path) -> Iterator[Daemon]:
    with daemon_thread() as daemon:
        yield daemon


@pytest.fixture
def file(home: Path) -> Path:
    path = home / ".config" / "Code" / "User" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(RAW)
    path.chmod(0o644)
    return path


def test_disconnect_gives_back_the_bytes_that_connect_changed(
    cli: Cli, file: Path
) -> None:
    token = cli("token").out.strip()
    done = cli("connect", "vscode", "--write", "--yes")
    assert (done.code, token in done.out + done.err) == (0, False)
    assert "byok disconnect vscode" in done.out
    assert token.encode() in file.read_bytes()
    back = cli("disconnect", "vscode", "--yes")
    assert (back.code, token in back.out + back.err) == (0, False)
    assert f"{file} no longer points at byok." in back.out
    assert file.read_bytes() == RAW


def test_connect_shows_the_change_before_it_asks(cli: Cli, file: Path) -> None:
    done = cli("connect", "vscode", "--write")
    assert done.code == 78
    assert "byok connect vscode --write --yes" in done.err
    assert '+  "augment.advanced.apiToken": "[redacted]",' in done.out
    assert file.read_bytes() == RAW


def test_connect_dry_run_writes_nothing(cli: Cli, file: Path) -> None:
    done = cli("connect", "vscode", "--dry-run")
    assert done.code == 0
    assert "Nothing was written." in done.err
    assert (file.read_bytes(), find_paths().client_backups.exists()) == (RAW, False)
    cli("connect", "vscode", "--write", "--yes")
    written = file.read_bytes()
    assert cli("disconnect", "vscode", "--dry-run").code == 0
    assert file.read_bytes() == written


def test_connect_warns_of_a_file_that_others_may_read(cli: Cli, file: Path) -> None:
    assert "chmod 600" in cli("connect", "vscode", "--write", "--yes").err
    cli("disconnect", "vscode", "--yes")
    file.chmod(0o600)
    assert "chmod 600" not in cli("connect", "vscode", "--write", "--yes").err


def test_connect_says_on_which_side_the_settings_are(
    cli: Cli, home: Path, daemon: Daemon
) -> None:
    machine = home / ".cursor-server" / "data" / "Machine"
    machine.mkdir(parents=True)
    done = cli("connect", "cursor", "--write", "--yes")
    assert done.code == 0
    assert (machine / "settings.json").exists()
    assert "the remote settings file of this machine" in done.err
    assert f"127.0.0.1:{daemon.port}" in done.err
    assert "Settings Sync" not in done.err
    assert cli("disconnect", "cursor", "--yes").out.endswith("was removed.\n")


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("codex", ".codex/config.toml"),
        ("opencode", ".config/opencode/opencode.json"),
        ("aider", ".aider.conf.yml"),
        ("continue", ".continue/config.yaml"),
    ],
)
def test_connect_makes_the_file_of_other_clients_and_disconnect_removes_it(
    cli: Cli, home: Path, daemon: Daemon, client: str, name: str
) -> None:
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    model = ("--model", "byok:box:m")
    done = cli("connect", client, "--write", "--yes", *model)
    assert (done.code, file.exists()) == (0, True)
    assert "byok:box:m" in file.read_text()
    assert f"{daemon.url}/v1" in file.read_text()
    assert cli("connect", client, "--write", *model).code == 0
    gone = cli("disconnect", client, "--yes")
    assert (gone.code, file.exists()) == (0, False)
    assert f"{file} was removed." in gone.out


def test_code_search_and_chats_are_connected_apart_and_disconnected_together(
    cli: Cli, file: Path, daemon: Daemon
) -> None:
    servers = file.with_name("mcp.json")
    token = cli("token").out.strip()
    for options in ((), ("--mcp",), ("--mcp",)):
        done = cli("connect", "vscode", *options, "--write", "--yes")
        assert (done.code, token in done.out + done.err) == (0, False)
    assert f"{daemon.url}/mcp" in servers.read_text()
    assert cli("disconnect", "vscode", "--yes").code == 0
    assert (file.read_bytes(), servers.exists()) == (RAW, False)


def test_claude_code_has_code_search_in_its_file_and_chats_by_variables(
    cli: Cli, home: Path, daemon: Daemon
) -> None:
    printed = cli("connect", "claude-code")
    assert printed.out.startswith(f"export ANTHROPIC_BASE_URL={daemon.url}\n")
    assert cli("connect", "claude-code", "--write", "--yes").code == 1
    assert cli("connect", "aider", "--mcp", "--write", "--yes").code != 0
    shown = json.loads(cli("connect", "claude-code", "--mcp").out)
    assert shown["mcpServers"]["byok"]["url"] == f"{daemon.url}/mcp"
    assert cli("connect", "claude-code", "--mcp", "--write", "--yes").code == 0
    assert json.loads((home / ".claude.json").read_bytes()) == shown
    assert cli("disconnect", "claude-code", "--yes").code == 0
    assert not (home / ".claude.json").exists()


def test_disconnect_of_an_edited_file_says_what_it_leaves(
    cli: Cli, file: Path, daemon: Daemon
) -> None:
    cli("connect", "vscode", "--write", "--yes")
    raw = file.read_bytes().replace(daemon.url.encode(), b"http://theirs/")
    file.write_bytes(raw)
    done = cli("disconnect", "vscode", "--yes")
    assert done.code == 0
    assert "augment.advanced.completionURL was changed since" in done.err
    assert "only byok's settings are taken out" in done.err
    assert b"http://theirs/" in file.read_bytes()
    assert b"apiToken" not in file.read_bytes()


@pytest.mark.parametrize("client", ["jetbrains", "cli", "sdk"])
def test_connect_that_cannot_write_prints_instead(
    cli: Cli, home: Path, client: str
) -> None:
    done = cli("connect", client, "--write", "--yes")
    assert (done.code, done.out) == (1, cli("connect", client).out)
    assert "byok cannot write this for you" in done.err
    assert cli("disconnect", client).code == 78
    assert [*home.iterdir()] == []


@pytest.mark.usefixtures("home")
def test_disconnect_of_a_program_that_is_not_here_has_nothing_to_undo(cli: Cli) -> None:
    done = cli("disconnect", "codex", "--yes")
    assert done.code == 78
    assert "There is nothing to undo" in done.err
    assert "Start the program" not in done.err
