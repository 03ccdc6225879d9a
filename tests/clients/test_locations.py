"""Where clients have their settings files."""

from pathlib import Path

import pytest

from byok.clients.locations import (
    ClientKind,
    ClientMachine,
    FileLocation,
    RunPlace,
    find_location,
    find_windows_files,
)
from byok.core.errors import ConfigError

VSCODE = ClientKind.VSCODE


@pytest.mark.parametrize(
    ("system", "client", "expected"),
    [
        ("linux", VSCODE, ".config/Code/User/settings.json"),
        (
            "linux",
            ClientKind.VSCODE_INSIDERS,
            ".config/Code - Insiders/User/settings.json",
        ),
        ("linux", ClientKind.VSCODIUM, ".config/VSCodium/User/settings.json"),
        ("linux", ClientKind.CURSOR, ".config/Cursor/User/settings.json"),
        ("darwin", VSCODE, "Library/Application Support/Code/User/settings.json"),
        ("win32", VSCODE, "AppData/Roaming/Code/User/settings.json"),
        ("linux", ClientKind.CODEX, ".codex/config.toml"),
        ("win32", ClientKind.OPENCODE, ".config/opencode/opencode.json"),
        ("darwin", ClientKind.AIDER, ".aider.conf.yml"),
        ("linux", ClientKind.CONTINUE, ".continue/config.yaml"),
    ],
)
def test_location_is_the_documented_one(
    system: str, client: ClientKind, expected: str, tmp_path: Path
) -> None:
    machine = ClientMachine(system, {}, tmp_path)
    assert find_location(client, machine) == FileLocation(tmp_path / expected)


def test_location_follows_the_variables_of_the_clients(tmp_path: Path) -> None:
    environ = {
        "XDG_CONFIG_HOME": str(tmp_path / "x"),
        "CODEX_HOME": str(tmp_path / "c"),
        "APPDATA": str(tmp_path / "a"),
    }
    machine = ClientMachine("linux", environ, tmp_path)
    assert find_location(VSCODE, machine).path.is_relative_to(tmp_path / "x" / "Code")
    codex = find_location(ClientKind.CODEX, machine)
    assert codex.path == tmp_path / "c" / "config.toml"
    windows = find_location(VSCODE, ClientMachine("win32", environ, tmp_path))
    assert windows.path.is_relative_to(tmp_path / "a" / "Code")
    named = ClientMachine(
        "linux", {"OPENCODE_CONFIG": str(tmp_path / "o.json")}, tmp_path
    )
    assert find_location(ClientKind.OPENCODE, named).path == tmp_path / "o.json"


def test_location_of_a_relative_variable_is_the_default(tmp_path: Path) -> None:
    machine = ClientMachine("linux", {"CODEX_HOME": "here"}, tmp_path)
    assert find_location(ClientKind.CODEX, machine).path.parent == tmp_path / ".codex"


def test_location_of_opencode_is_the_file_that_there_is(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").touch()
    found = find_location(ClientKind.OPENCODE, ClientMachine("linux", {}, tmp_path))
    assert found.path == folder / "opencode.jsonc"


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (VSCODE, ".vscode-server"),
        (ClientKind.VSCODE_INSIDERS, ".vscode-server-insiders"),
        (ClientKind.VSCODIUM, ".vscodium-server"),
        (ClientKind.CURSOR, ".cursor-server"),
    ],
)
@pytest.mark.parametrize("place", ["wsl", "ssh", "container"])
def test_location_on_a_remote_machine_is_its_own_file(
    client: ClientKind, server: str, place: str, tmp_path: Path
) -> None:
    remote = tmp_path / server / "data" / "Machine"
    away = ClientMachine("linux", {}, tmp_path, RunPlace(place))
    assert not find_location(client, away).is_remote
    remote.mkdir(parents=True)
    assert find_location(client, away) == FileLocation(remote / "settings.json", True)
    at_home = ClientMachine("linux", {}, tmp_path)
    assert not find_location(client, at_home).is_remote


def test_locations_on_windows_are_found_from_wsl(tmp_path: Path) -> None:
    files = [
        tmp_path / "Users" / name / "AppData/Roaming/Code/User/settings.json"
        for name in ("ann", "bob", "me", "x1", "x2", "x3")
    ]
    for file in files:
        file.parent.mkdir(parents=True)
        file.touch()
    assert set(find_windows_files(VSCODE, tmp_path)) < set(files)
    assert len(find_windows_files(VSCODE, tmp_path)) == 5
    assert find_windows_files(ClientKind.CURSOR, tmp_path) == []
    assert find_windows_files(VSCODE, tmp_path / "none") == []


def test_location_of_a_profile(tmp_path: Path) -> None:
    profile = tmp_path / ".config/Code/User/profiles/-1a2b3c"
    profile.mkdir(parents=True)
    machine = ClientMachine("linux", {}, tmp_path)
    found = find_location(VSCODE, machine, "-1a2b3c")
    assert found.path == profile / "settings.json"
    with pytest.raises(ConfigError, match="no profile other") as caught:
        find_location(VSCODE, machine, "other")
    assert "-1a2b3c" in caught.value.hint
    with pytest.raises(ConfigError, match=r"no profile \.\./\.\."):
        find_location(VSCODE, machine, "../..")
    with pytest.raises(ConfigError) as caught:
        find_location(ClientKind.CURSOR, machine, "other")
    assert "There are none" in caught.value.hint
    with pytest.raises(ConfigError, match="Codex has no profiles"):
        find_location(ClientKind.CODEX, machine, "x")


@pytest.mark.parametrize("client", ["jetbrains", "cli", "sdk"])
def test_location_of_a_client_without_a_file(client: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file of settings"):
        find_location(ClientKind(client), ClientMachine("linux", {}, tmp_path))
