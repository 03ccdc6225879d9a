"""The clients that byok connects, where byok runs, and where clients' settings are."""

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from byok.clients.settings_text import TextFormat
from byok.core.errors import ConfigError
from byok.core.escapes import shell_word

_MAX_READ_CHARS = 1000
_DRIVE = Path("/mnt/c")  # where WSL mounts the disk of Windows by default
_MAX_WINDOWS_FILES = 5


class ClientFacts(Struct, frozen=True):
    """A client: its name for people, and what byok knows of its settings file.

    `folders` are those of an editor's settings and of its server for remote windows.
    `names_model` if its settings name the model. `has_chats` and `has_mcp` tell whether
    byok can be its source of answers, or one of its MCP servers.
    """

    name: str
    format: TextFormat | None = None
    folders: tuple[str, str] | None = None
    names_model: bool = False
    has_chats: bool = True
    has_mcp: bool = True


_JSONC, _TOML, _YAML = TextFormat.JSONC, TextFormat.TOML, TextFormat.YAML
_NO_FACTS = ClientFacts("")
_INSIDERS = ("Code - Insiders", ".vscode-server-insiders")


class ClientKind(StrEnum):
    """The clients that byok prints or writes settings for."""

    facts: ClientFacts

    VSCODE = "vscode", ClientFacts("VS Code", _JSONC, ("Code", ".vscode-server"))
    VSCODE_INSIDERS = (
        "vscode-insiders",
        ClientFacts("VS Code Insiders", _JSONC, _INSIDERS),
    )
    VSCODIUM = (
        "vscodium",
        ClientFacts("VSCodium", _JSONC, ("VSCodium", ".vscodium-server")),
    )
    CURSOR = "cursor", ClientFacts("Cursor", _JSONC, ("Cursor", ".cursor-server"))
    JETBRAINS = "jetbrains", ClientFacts("the JetBrains plugin", has_mcp=False)
    CLI = "cli", ClientFacts("the CLI", has_mcp=False)
    SDK = "sdk", ClientFacts("the SDKs", has_mcp=False)
    CODEX = "codex", ClientFacts("Codex", _TOML, names_model=True)
    OPENCODE = "opencode", ClientFacts("opencode", _JSONC, names_model=True)
    AIDER = "aider", ClientFacts("aider", _YAML, names_model=True, has_mcp=False)
    CONTINUE = (
        "continue",
        ClientFacts("Continue", _YAML, names_model=True, has_mcp=False),
    )
    CLAUDE_CODE = "claude-code", ClientFacts("Claude Code", _JSONC, has_chats=False)

    def __new__(cls, value: str, facts: ClientFacts = _NO_FACTS) -> Self:
        """Create a member by its name on the command line, with its facts."""
        member = str.__new__(cls, value)
        member._value_, member.facts = value, facts
        return member

    @property
    def text_format(self) -> TextFormat:
        """The format of its settings, also of those that byok only prints."""
        return self.facts.format or _JSONC

    @property
    def is_editor(self) -> bool:
        """Whether it is VS Code, or an editor derived from it."""
        return bool(self.facts.folders)


EDITORS = sorted(kind for kind in ClientKind if kind.is_editor)
# The clients whose settings files byok writes to answer their chats.
WRITABLE = [k for k in ClientKind if k.facts.format and k.facts.has_chats]


class RunPlace(StrEnum):
    """Where byok runs: on the desktop itself, in WSL, behind SSH, or in a container.

    Except on the desktop, the editor's window may be on another machine than its
    extensions; each machine has its own settings file and its own 127.0.0.1.
    """

    DESKTOP = "desktop"
    WSL = "wsl"
    SSH = "ssh"
    CONTAINER = "container"


def read_start(path: str) -> str | None:
    """Return the first characters of a system file, None if it cannot be read."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_READ_CHARS)
    except OSError:
        return None


def find_run_place(
    environ: Mapping[str, str], read: Callable[[str], str | None] = read_start
) -> RunPlace:
    """Return where this process runs.

    Containers: Docker and Podman create a file, systemd and Podman set `container`, VS
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
    """Return advice on which machine the settings belong, and how byok is reached.

    `is_remote_file` is whether the settings file is this machine's file for windows
    that are opened from another machine, or None if the user named the file.
    `windows_files` are the files of the same editor on the Windows that hosts WSL.
    """
    if place is RunPlace.DESKTOP or not client.is_editor:
        return [_TOOL_ADVICE[place]] if place in _TOOL_ADVICE else []
    lines = [_FILE_ADVICE[is_remote_file]] if is_remote_file is not None else []
    lines.append(_REACH_ADVICE[place].format(port=port))
    if place is RunPlace.WSL:
        lines += [
            f"On Windows that is: --file {shell_word(file)}" for file in windows_files
        ]
    return lines


_TOOL_ADVICE = {
    RunPlace.WSL: (
        "byok runs in WSL. These settings are for programs that run in WSL too; those "
        "on Windows have their own files there."
    ),
    RunPlace.CONTAINER: (
        "byok runs in a container. These settings are for programs in the same "
        "container: to all others, 127.0.0.1 is another machine."
    ),
}
_FILE_ADVICE = {
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
_REACH_ADVICE = {
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


class ClientMachine(Struct, frozen=True):
    """The facts that decide where settings files are; `system` is sys.platform."""

    system: str
    environ: Mapping[str, str]
    home: Path
    place: RunPlace = RunPlace.DESKTOP


def find_machine() -> ClientMachine:
    """Return the facts of this machine and user."""
    place = find_run_place(os.environ)
    return ClientMachine(sys.platform, os.environ, Path.home(), place)


class FileLocation(NamedTuple):
    """A settings file; `is_remote` if it is for windows on other machines."""

    path: Path
    is_remote: bool = False


def find_location(
    client: ClientKind, machine: ClientMachine, profile: str = ""
) -> FileLocation:
    """Return the path of a client's settings file, whether it exists or not.

    `profile` is the id of one of VS Code's profiles.

    Raises:
        ConfigError: the client has no profiles, or there is none with this id.
    """
    if client.is_editor:
        return _find_editor(client, machine, profile)
    if profile:
        raise ConfigError(f"{client.facts.name} has no profiles that byok knows.")
    home, environ = machine.home, machine.environ
    match client:
        case ClientKind.CODEX:  # github.com/openai/codex, docs/config.md
            return FileLocation(
                _folder(environ, "CODEX_HOME", home / ".codex") / "config.toml"
            )
        case ClientKind.OPENCODE:  # opencode.ai/docs/config
            return FileLocation(_find_opencode(machine))
        case ClientKind.AIDER:  # ~/.aider.conf.yml of aider.chat/docs/config
            return FileLocation(home / ".aider.conf.yml")
        case ClientKind.CONTINUE:  # docs.continue.dev/reference
            return FileLocation(home / ".continue" / "config.yaml")
        case _:
            raise ConfigError(f"{client.facts.name} has no file of settings.")


def find_mcp_location(
    client: ClientKind, machine: ClientMachine, profile: str = ""
) -> FileLocation:
    """Return the path of the file with a client's MCP servers.

    Raises:
        ConfigError: as in `find_location`.
    """
    home = machine.home
    match client:
        case ClientKind.CLAUDE_CODE:  # code.claude.com/docs/en/mcp
            folder = _folder(machine.environ, "CLAUDE_CONFIG_DIR", home)
            return FileLocation(folder / ".claude.json")
        case ClientKind.CURSOR:  # cursor.com/docs/mcp
            return FileLocation(home / ".cursor" / "mcp.json")
        case _ if client.is_editor:  # code.visualstudio.com/docs, "MCP configuration"
            desktop = replace(machine, place=RunPlace.DESKTOP)
            settings = find_location(client, desktop, profile).path
            return FileLocation(settings.with_name("mcp.json"))
        case _:  # such as developers.openai.com/codex/mcp, opencode.ai/docs
            return find_location(client, machine, profile)


def find_windows_files(client: ClientKind, drive: Path = _DRIVE) -> list[Path]:
    """Return an editor's settings files on the Windows that WSL runs in."""
    name = (client.facts.folders or ("",))[0]
    files = drive.glob(f"Users/*/AppData/Roaming/{name}/User/settings.json")
    return sorted(itertools.islice(files, _MAX_WINDOWS_FILES))


def _find_editor(
    client: ClientKind, machine: ClientMachine, profile: str
) -> FileLocation:
    """Return the file that code.visualstudio.com/docs/configure/settings names.

    On a remote machine, it is that machine's file if the editor has created its folder
    ("SSH host-specific settings" of code.visualstudio.com/docs/remote).
    """
    name, server = client.facts.folders or ("", "")
    remote = machine.home / server / "data" / "Machine"
    is_away = machine.place is not RunPlace.DESKTOP
    if is_away and not profile and remote.is_dir():
        return FileLocation(remote / "settings.json", is_remote=True)
    user = _application_folder(machine) / name / "User"
    if not profile:
        return FileLocation(user / "settings.json")
    profiles = sorted(p.name for p in (user / "profiles").glob("*") if p.is_dir())
    if profile not in profiles:
        raise ConfigError(
            f"{client.facts.name} has no profile {profile}.",
            hint=f"There are: {', '.join(profiles)}."
            if profiles
            else "There are none; leave --profile out.",
        )
    return FileLocation(user / "profiles" / profile / "settings.json")


def _application_folder(machine: ClientMachine) -> Path:
    home, environ = machine.home, machine.environ
    if machine.system == "win32":
        return _folder(environ, "APPDATA", home / "AppData" / "Roaming")
    if machine.system == "darwin":
        return home / "Library" / "Application Support"
    return _folder(environ, "XDG_CONFIG_HOME", home / ".config")


def _find_opencode(machine: ClientMachine) -> Path:
    """Return the existing one of opencode's two files, which it reads and merges."""
    if path := machine.environ.get("OPENCODE_CONFIG", ""):
        return Path(path)
    folder = _folder(machine.environ, "XDG_CONFIG_HOME", machine.home / ".config")
    files = [folder / "opencode" / f"opencode.{ending}" for ending in ("jsonc", "json")]
    return next((file for file in files if file.exists()), files[1])


def _folder(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "")
    return Path(value) if Path(value).is_absolute() else default
