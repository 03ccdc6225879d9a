"""Which system keeps programs running on this machine, and what it is to run."""

import os
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from byok.errors import CannotStart
from byok.platform.paths import Paths
from byok.platform.programs import safe_path_entries
from byok.service.base import Launch, ServiceSystem, mark_of
from byok.service.launchd import Launchd
from byok.service.systemd import Systemd
from byok.service.windows_tasks import WindowsTasks

# They move byok's folders; a service does not see those of a shell.
_PLACES = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")


def choose_system(
    paths: Paths,
    platform: str = sys.platform,
    environ: Mapping[str, str] = os.environ,
) -> ServiceSystem:
    """Return the service manager of this operating system, whether it runs or not.

    Raises:
        CannotStart: byok knows none.
    """
    home = Path.home()
    if platform == "linux":
        folder = environ.get("XDG_CONFIG_HOME", "")
        config = Path(folder) if Path(folder).is_absolute() else home / ".config"
        return Systemd(config / "systemd" / "user")
    if platform == "darwin":
        return Launchd(home / "Library" / "LaunchAgents", _user_id())
    if platform == "win32":
        names = (environ.get("USERDOMAIN", ""), environ.get("USERNAME", ""))
        return WindowsTasks(paths.state_dir, "\\".join(filter(None, names)))
    raise CannotStart(
        f"byok knows no service manager of this system ({platform}).",
        code="service",
        hint="Start `byok serve` where the system starts your programs.",
    )


def make_launch(
    paths: Paths,
    port: int,
    config: Path | None = None,
    *,
    sandbox: bool = True,
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
) -> Launch:
    """Return what the service runs: this interpreter, on the folders of now.

    Raises:
        ConfigError: a path has characters that no service can be given.
    """
    places = {"BYOK_HOME": str(paths.config_dir)} if environ.get("BYOK_HOME") else {}
    if platform != "win32":
        places |= {
            name: environ[name]
            for name in _PLACES
            if Path(environ.get(name, "")).is_absolute()
        }
        if path := _search_path(environ):
            places["PATH"] = path
    folders = paths.folders
    return Launch(
        python=sys.executable,
        options=("--config", str(config.absolute())) if config else (),
        environment=places,
        folders=_outermost(folders),
        port=port,
        mark=mark_of(paths.state_dir),
        has_ipv6=_has_ipv6(),
        sandbox=sandbox,
    )


def _search_path(environ: Mapping[str, str]) -> str:
    """Return the folders with programs of now.

    A service has few of its own; ripgrep, git and key commands may be in others. A
    virtual environment that this shell uses belongs to a project, which may be
    anybody's.
    """
    project = environ.get("VIRTUAL_ENV", "")
    entries = safe_path_entries(
        environ.get("PATH", ""), [Path(project)] if project else ()
    )
    return os.pathsep.join(dict.fromkeys(filter(str.isprintable, map(str, entries))))


def _outermost(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders that are in none of the others."""
    return tuple(
        folder
        for folder in folders
        if not any(other in folder.parents for other in folders)
    )


def _has_ipv6() -> bool:
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _user_id() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
