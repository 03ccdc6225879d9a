"""Where byok runs: on the desktop itself, in WSL, behind SSH, or in a container.

Then the editor's window may be on another machine than its extensions, and each has a
settings file and a 127.0.0.1 of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from byok.client_settings.client_kind import ClientKind
from byok.escapes import shell_word

_LONGEST = 1000


class RunPlace(StrEnum):
    """Where byok runs, as far as it matters to clients."""

    DESKTOP = "desktop"
    WSL = "wsl"
    SSH = "ssh"
    CONTAINER = "container"


def read_start(path: str) -> str | None:
    """Return the first characters of a file of the system, None if there is none."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST)
    except OSError:
        return None


def find_run_place(
    environ: Mapping[str, str], read: Callable[[str], str | None] = read_start
) -> RunPlace:
    """Tell where this process runs.

    Containers: Docker and Podman make a file, systemd and Podman set `container`, VS
    Code sets REMOTE_CONTAINERS, Codespaces CODESPACES. WSL sets WSL_DISTRO_NAME, and
    its kernel has Microsoft's name. sshd sets SSH_CONNECTION.
    """
    marks = ("REMOTE_CONTAINERS", "CODESPACES", "container")
    if any(environ.get(mark) for mark in marks):
        return RunPlace.CONTAINER
    if any(read(file) is not None for file in ("/.dockerenv", "/run/.containerenv")):
        return RunPlace.CONTAINER
    kernel = read("/proc/sys/kernel/osrelease") or ""
    if environ.get("WSL_DISTRO_NAME") or "microsoft" in kernel.casefold():
        return RunPlace.WSL
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return RunPlace.SSH
    return RunPlace.DESKTOP


def advise(
    client: ClientKind,
    place: RunPlace,
    port: int,
    *,
    is_remote_file: bool | None,
    windows_files: Iterable[Path] = (),
) -> list[str]:
    """Return sentences on which side the settings belong, and how byok is reached.

    `is_remote_file` says that the file is the one of this machine for windows that are
    opened from another; None is a file that the user named. `windows_files` are those
    of the same editor on the Windows around WSL.
    """
    if place is RunPlace.DESKTOP or not client.is_editor:
        return [_TOOLS[place]] if place in _TOOLS else []
    lines = [_FILES[is_remote_file]] if is_remote_file is not None else []
    lines.append(_REACH[place].format(port=port))
    if place is RunPlace.WSL:
        lines += [
            f"On Windows that is: --file {shell_word(file)}" for file in windows_files
        ]
    return lines


_TOOLS = {
    RunPlace.WSL: (
        "byok runs in WSL. These settings are for programs that run in WSL too; those "
        "on Windows have their own files there."
    ),
    RunPlace.CONTAINER: (
        "byok runs in a container. These settings are for programs in the same "
        "container: to all others, 127.0.0.1 is another machine."
    ),
}
_FILES = {
    True: (
        "This is the remote settings file of this machine: it counts in every window "
        "that is connected to it, and in no other."
    ),
    False: (
        "This file counts in windows that are opened on this machine itself. The ones "
        "that are connected from another machine read this machine's remote settings, "
        "which the editor makes when it first connects: run this command again then."
    ),
}
_REACH = {
    RunPlace.WSL: (
        "Extensions in WSL reach byok at 127.0.0.1:{port}. So do windows that are "
        "opened on Windows itself, as WSL forwards the port; their settings are in "
        "%APPDATA% on Windows: name that file with --file, by its path below /mnt/c."
    ),
    RunPlace.SSH: (
        "Extensions on this host reach byok at 127.0.0.1:{port}. If byok ran on the "
        "computer in front of you instead, they would reach it through a tunnel: "
        "ssh -R {port}:127.0.0.1:{port} HOST"
    ),
    RunPlace.CONTAINER: (
        "Extensions in this container reach byok at 127.0.0.1:{port}. A byok outside "
        "of it would be reached only if the container shares the host's network "
        "(--network=host)."
    ),
}
