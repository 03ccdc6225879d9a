"""Find the workspace or project around a folder, so that no other code is searched."""

import os
from collections.abc import Iterable
from pathlib import Path

from byok.errors import ConfigError
from byok.index.files.roots import OwnFolders, check_root
from byok.platform.programs import project_of


def workspace_of(folder: Path, known: Iterable[Path], own: OwnFolders) -> Path:
    """Return the innermost workspace around a folder, else its project.

    Raises:
        ConfigError: it is in no workspace, and cannot be one itself.
    """
    around = [root for root in known if folder.is_relative_to(root)]
    if around:
        return max(around, key=lambda root: len(root.parts))
    return check_project(project_of(folder), own)


def check_project(folder: Path, own: OwnFolders) -> Path:
    """Return a folder if it can be the project of a program started in it.

    Raises:
        ConfigError: it cannot be a workspace, or is a system folder.
    """
    system = os.environ.get("SYSTEMROOT")  # where Windows starts programs
    if system and folder.is_relative_to(system):
        raise ConfigError(f"{folder} is a system folder.")
    return check_root(folder, own)
