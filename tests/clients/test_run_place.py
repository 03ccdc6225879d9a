"""Where byok runs."""

from pathlib import Path

import pytest

from byok.clients.locations import (
    ClientKind,
    RunPlace,
    advise,
    find_run_place,
    read_start,
)

WSL_KERNEL = {"/proc/sys/kernel/osrelease": "5.15.153.1-Microsoft-standard-WSL2\n"}
LINUX_KERNEL = {"/proc/sys/kernel/osrelease": "6.8.0-51-generic\n"}


@pytest.mark.parametrize(
    ("environ", "files", "expected"),
    [
        ({}, {}, "desktop"),
        ({}, LINUX_KERNEL, "desktop"),
        ({"WSL_DISTRO_NAME": "Ubuntu"}, LINUX_KERNEL, "wsl"),
        ({}, WSL_KERNEL, "wsl"),
        ({"SSH_CONNECTION": "10.0.0.2 51000 10.0.0.1 22"}, LINUX_KERNEL, "ssh"),
        ({"SSH_TTY": "/dev/pts/0"}, LINUX_KERNEL, "ssh"),
        ({"SSH_CONNECTION": ""}, LINUX_KERNEL, "desktop"),
        ({}, {"/.dockerenv": ""}, "container"),
        ({}, {"/run/.containerenv": 'engine="podman"'}, "container"),
        ({"container": "podman"}, {}, "container"),
        ({"REMOTE_CONTAINERS": "true"}, WSL_KERNEL, "container"),
        ({"CODESPACES": "true", "SSH_CONNECTION": "x"}, {}, "container"),
        ({}, {**WSL_KERNEL, "/.dockerenv": ""}, "container"),
    ],
)
def test_surroundings_are_found_by_their_documented_signs(
    environ: dict[str, str], files: dict[str, str], expected: str
) -> None:
    assert find_run_place(environ, files.get) is RunPlace(expected)


def test_surroundings_read_little_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("x" * 5000)
    assert read_start(str(tmp_path / "long")) == "x" * 1000
    assert read_start(str(tmp_path / "none")) is None


def said(client: ClientKind, place: RunPlace, *, is_remote: bool | None = False) -> str:
    return " ".join(advise(client, place, 8317, is_remote_file=is_remote))


def test_advice_on_a_desktop_is_none() -> None:
    assert said(ClientKind.VSCODE, RunPlace.DESKTOP) == ""
    assert said(ClientKind.CODEX, RunPlace.DESKTOP) == ""


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
