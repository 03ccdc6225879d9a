"""Find and start system programs, never those of a repository."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_ENDING = ".exe" if sys.platform == "win32" else ""
_PACKAGES = "node_modules"  # `npm run` puts programs of all packages into PATH
_sources: list[Callable[[], Iterable[Path]]] = []


def distrust(folders: Callable[[], Iterable[Path]]) -> None:
    """Take no program from the folders that this gives, nor from below, in any search.

    It is called at each search, because workspaces come and go while a process runs.
    The command line calls this once, at its start.
    """
    _sources.append(folders)


def project_of(folder: Path) -> Path:
    """Return the root of the git repository around a folder, else the folder.

    A repository that is the home folder, or contains it, does not count.
    """
    for place in (folder, *folder.parents):
        if _has_home(place):
            break
        if (place / ".git").exists():
            return place
    return folder


def _has_home(folder: Path) -> bool:
    """Tell whether a folder is the user's home, or contains it."""
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):  # nobody knows where it is
        home = Path(folder.anchor)
    return home.is_relative_to(folder)


def safe_path_entries(
    path: str | None = None, never: Iterable[Path] = ()
) -> Iterator[Path]:
    """Give the entries of `path` (by default PATH) that may be searched for programs.

    Excluded is what a repository may control: relative entries, folders inside one of
    `never`, of the folders to `distrust`, or of the project around the current folder,
    and packages of npm. So are folders that cannot be resolved.
    """
    known = (folder for source in _sources for folder in source())
    forbidden = [folder.resolve() for folder in (*never, *known)]
    here = _current_folder()
    if here is not None:
        project = project_of(here)
        if not _has_home(project):
            forbidden.append(project)
    value = os.environ.get("PATH", os.defpath) if path is None else path
    for entry in value.split(os.pathsep):
        folder = Path(entry)
        if not folder.is_absolute():
            continue
        try:
            place = folder.resolve()
        except (OSError, RuntimeError):  # links that lead round in a circle
            continue
        if place == here or _PACKAGES in place.parts:
            continue
        if not any(place.is_relative_to(root) for root in forbidden):
            yield folder


def _current_folder() -> Path | None:
    try:
        return Path.cwd().resolve()
    except OSError:  # it is gone
        return None


def find_program(
    name: str, *, path: str | None = None, never: Iterable[Path] = ()
) -> str | None:
    """Return the absolute path of a program in one of the trusted folders, or None."""
    for folder in safe_path_entries(path, never):
        program = folder / f"{name}{_ENDING}"
        with suppress(OSError):  # a folder that may not be entered
            if program.is_file() and os.access(program, os.X_OK):
                return str(program)
    return None


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with only PATH and the locale, and `extra`."""
    kept = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    if "SYSTEMROOT" in os.environ:  # without it nothing starts on Windows
        kept["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return {**kept, **(extra or {})}


def kill_group(pid: int) -> None:
    """Kill a process that was started in its own session, and its children."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(pid, signal.SIGTERM)
        else:
            os.killpg(pid, signal.SIGKILL)
