"""Where each client has its settings file."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from byok.client_settings.client_kind import ClientKind
from byok.client_settings.run_place import RunPlace
from byok.errors import ConfigError

# The folders of editors, and those of their servers for remote windows.
_EDITORS = {
    ClientKind.VSCODE: ("Code", ".vscode-server"),
    ClientKind.VSCODE_INSIDERS: ("Code - Insiders", ".vscode-server-insiders"),
    ClientKind.VSCODIUM: ("VSCodium", ".vscodium-server"),
    ClientKind.CURSOR: ("Cursor", ".cursor-server"),
}

_DRIVE = Path("/mnt/c")  # where WSL mounts the disk of Windows, unless told otherwise
_MOST_FILES = 5


@dataclass(frozen=True, slots=True)
class ClientMachine:
    """Facts that tell where programs keep their settings; `system` is sys.platform."""

    system: str
    environ: Mapping[str, str]
    home: Path
    place: RunPlace = RunPlace.DESKTOP


class FileLocation(NamedTuple):
    """A settings file; `is_remote` if it is for windows opened from other machines."""

    path: Path
    is_remote: bool = False


def find_location(
    client: ClientKind, machine: ClientMachine, profile: str = ""
) -> FileLocation:
    """Return where the user's settings of a client are, whether the file exists or not.

    `profile` is the id of one of VS Code's profiles.

    Raises:
        ConfigError: the client has no profiles, or there is none with this id.
    """
    if client.is_editor:
        return _find_editor(client, machine, profile)
    if profile:
        raise ConfigError(f"{client.readable_name} has no profiles that byok knows.")
    home, environ = machine.home, machine.environ
    match client:
        case ClientKind.CODEX:  # github.com/openai/codex, docs/config.md
            return FileLocation(
                _folder(environ, "CODEX_HOME", home / ".codex") / "config.toml"
            )
        case ClientKind.OPENCODE:  # opencode.ai/docs/config
            return FileLocation(_find_opencode(machine))
        case ClientKind.AIDER:  # aider.chat/docs/config/aider_conf.html
            return FileLocation(home / ".aider.conf.yml")
        case ClientKind.CONTINUE:  # docs.continue.dev/reference
            return FileLocation(home / ".continue" / "config.yaml")
        case _:
            raise ConfigError(f"{client.readable_name} has no file of settings.")


def find_windows_files(client: ClientKind, drive: Path = _DRIVE) -> list[Path]:
    """Return an editor's settings files on the Windows that WSL runs in."""
    name = _EDITORS[client][0]
    found = drive.glob(f"Users/*/AppData/Roaming/{name}/User/settings.json")
    return sorted(itertools.islice(found, _MOST_FILES))


def _find_editor(
    client: ClientKind, machine: ClientMachine, profile: str
) -> FileLocation:
    """Return the file that code.visualstudio.com/docs/configure/settings names.

    Where byok runs on a remote machine, it is that machine's file if the editor has
    made its folder ("SSH host-specific settings" of code.visualstudio.com/docs/remote).
    """
    name, server = _EDITORS[client]
    remote = machine.home / server / "data" / "Machine"
    is_away = machine.place is not RunPlace.DESKTOP
    if is_away and not profile and remote.is_dir():
        return FileLocation(remote / "settings.json", is_remote=True)
    user = _application_folder(machine) / name / "User"
    if not profile:
        return FileLocation(user / "settings.json")
    known = sorted(p.name for p in (user / "profiles").glob("*") if p.is_dir())
    if profile not in known:
        raise ConfigError(
            f"{client.readable_name} has no profile {profile}.",
            hint=f"There are: {', '.join(known)}."
            if known
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
    """Return the file that there is; both names are read, and merged."""
    if named := machine.environ.get("OPENCODE_CONFIG", ""):
        return Path(named)
    folder = _folder(machine.environ, "XDG_CONFIG_HOME", machine.home / ".config")
    files = [folder / "opencode" / f"opencode.{ending}" for ending in ("jsonc", "json")]
    return next((file for file in files if file.exists()), files[1])


def _folder(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "")
    return Path(value) if Path(value).is_absolute() else default
