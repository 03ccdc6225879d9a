"""Find and start system programs, never those of a repository."""

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_ENDING = ".exe" if sys.platform == "win32" else ""


def safe_path_entries(
    path: str | None = None, never: Iterable[Path] = ()
) -> Iterator[Path]:
    """Give the entries of `path` (by default PATH) that may be searched for programs.

    Excluded are relative entries, the current folder, folders inside one of `never`,
    because a repository may control them, and folders that cannot be resolved.
    """
    forbidden = [folder.resolve() for folder in never]
    here = _current_folder()
    value = os.environ.get("PATH", os.defpath) if path is None else path
    for entry in value.split(os.pathsep):
        folder = Path(entry)
        if not folder.is_absolute():
            continue
        try:
            place = folder.resolve()
        except (OSError, RuntimeError):  # links that lead round in a circle
            continue
        if place != here and not any(place.is_relative_to(root) for root in forbidden):
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
