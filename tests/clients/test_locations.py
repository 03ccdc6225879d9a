"""Where clients have their settings files, and where byok runs beside them."""

from pathlib import Path

import pytest

from byok.clients.locations import (
    ClientKind,
    ClientMachine,
    FileLocation,
    RunPlace,
    advise,
    find_location,
    find_mcp_location,
    find_run_place,
    find_windows_files,
)
from byok.core.errors import ConfigError

VSCODE = ClientKind.VSCODE


@pytest.mark.parametrize(
    ("system", "client", "expected"),
    [
        ("linux", VSCODE, ".config/Code/User/settings.json"),
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


@pytest.mark.parametrize(
    ("system", "client", "expected"),
    [
        ("linux", VSCODE, ".config/Code/User/mcp.json"),
        ("darwin", VSCODE, "Library/Application Support/Code/User/mcp.json"),
        ("win32", ClientKind.CURSOR, ".cursor/mcp.json"),
        ("linux", ClientKind.CODEX, ".codex/config.toml"),
        ("linux", ClientKind.OPENCODE, ".config/opencode/opencode.json"),
        ("linux", ClientKind.CLAUDE_CODE, ".claude.json"),
    ],
)
def test_location_of_mcp_servers_is_the_documented_one(
    system: str, client: ClientKind, expected: str, tmp_path: Path
) -> None:
    (tmp_path / ".vscode-server/data/Machine").mkdir(parents=True)
    for place in (RunPlace.DESKTOP, RunPlace.SSH):
        machine = ClientMachine(system, {}, tmp_path, place)
        assert find_mcp_location(client, machine) == FileLocation(tmp_path / expected)


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


def test_location_of_opencode_is_the_file_that_there_is(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").touch()
    found = find_location(ClientKind.OPENCODE, ClientMachine("linux", {}, tmp_path))
    assert found.path == folder / "opencode.jsonc"


@pytest.mark.parametrize(
    ("client", "server"),
    [(VSCODE, ".vscode-server"), (ClientKind.CURSOR, ".cursor-server")],
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


WSL_KERNEL = {"/proc/sys/kernel/osrelease": "5.15.153.1-Microsoft-standard-WSL2\n"}
LINUX_KERNEL = {"/proc/sys/kernel/osrelease": "6.8.0-51-generic\n"}


@pytest.mark.parametrize(
    ("environ", "files", "expected"),
    [
        ({}, {}, "desktop"),
        ({"WSL_DISTRO_NAME": "Ubuntu"}, LINUX_KERNEL, "wsl"),
        ({}, WSL_KERNEL, "wsl"),
        ({"SSH_CONNECTION": "10.0.0.2 51000 10.0.0.1 22"}, LINUX_KERNEL, "ssh"),
        ({"SSH_CONNECTION": ""}, LINUX_KERNEL, "desktop"),
        ({}, {"/.dockerenv": ""}, "container"),
        ({"container": "podman"}, {}, "container"),
        ({"REMOTE_CONTAINERS": "true"}, WSL_KERNEL, "container"),
        ({}, {**WSL_KERNEL, "/.dockerenv": ""}, "container"),
    ],
)
def test_surroundings_are_found_by_their_documented_signs(
    environ: dict[str, str], files: dict[str, str], expected: str
) -> None:
    assert find_run_place(environ, files.get) is RunPlace(expected)


def said(client: ClientKind, place: RunPlace, *, is_remote: bool | None = False) -> str:
    return " ".join(advise(client, place, 8317, is_remote_file=is_remote))


@pytest.mark.parametrize(
    ("place", "how"),
    [
        (RunPlace.WSL, "%APPDATA%"),
        (RunPlace.SSH, "ssh -R 8317:127.0.0.1:8317"),
        (RunPlace.CONTAINER, "--network=host"),
    ],
)
def test_advice_names_the_side_of_the_file_and_the_way_to_byok(
    place: RunPlace, how: str
) -> None:
    remote = said(ClientKind.CURSOR, place, is_remote=True)
    assert "remote settings file of this machine" in remote
    assert how in remote
    assert "run this command again" in said(ClientKind.CURSOR, place)
    named = said(ClientKind.CURSOR, place, is_remote=None)
    assert how in named
    assert "This " not in named


def test_advice_in_wsl_names_the_files_on_windows() -> None:
    file = Path("/mnt/c/Users/me/AppData/Roaming/Code/User/settings.json")

    def last(place: RunPlace) -> str:
        lines = advise(
            ClientKind.VSCODE, place, 1, is_remote_file=True, windows_files=[file]
        )
        return lines[-1]

    assert last(RunPlace.WSL) == f"On Windows that is: --file '{file}'"
    assert str(file) not in last(RunPlace.SSH)


def test_advice_for_programs_in_a_terminal_is_about_their_side() -> None:
    assert "in WSL" in said(ClientKind.CODEX, RunPlace.WSL)
    assert "same container" in said(ClientKind.AIDER, RunPlace.CONTAINER)
    assert said(ClientKind.AIDER, RunPlace.SSH) == ""
