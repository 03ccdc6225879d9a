"""Which folders may be workspaces."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from byok.core.errors import BadRequest, ConfigError
from byok.core.escapes import is_text
from byok.core.suggest import did_you_mean

NO_WORKSPACE = "byok has no workspace yet: `byok index add DIR` adds one."


class OwnFolders:
    """byok's own folders with its token and settings, which are never indexed.

    They are recognised under every name: by their path, and by device and inode, so
    also through links, mounts and other spellings of letters.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._paths = frozenset(map(os.path.realpath, folders))
        self._path_by_identity = {
            _identity(folder): folder
            for top in self._paths
            for folder, _, _ in os.walk(top)
        }

    def contain(self, path: Path) -> bool:
        """Tell whether a folder is one of byok's, or is in one."""
        real = Path(os.path.realpath(path))
        return any(map(self.include, map(str, (real, *real.parents))))

    def include(self, path: str) -> bool:
        """Tell whether a folder is one of byok's, or was in one at the start."""
        if path in self._paths:
            return True
        known = self._path_by_identity.get(_identity(path))
        # The inode may belong to another folder meanwhile.
        return known is not None and _identity(known) == _identity(path)


def check_root(root: Path, own_folders: OwnFolders) -> Path:
    """Return the resolved path of a folder that may be a workspace.

    Raises:
        ConfigError: it is no folder, a whole disk or home, another user's or byok's
            own, or has a name that JSON and SQLite cannot store.
    """
    try:
        real = root.expanduser().resolve(strict=True)
        facts = real.stat()
    except (OSError, RuntimeError, ValueError) as error:
        why = "there is no such folder" if isinstance(error, FileNotFoundError) else ""
        why = why or getattr(error, "strerror", None) or "its path is broken"
        raise ConfigError(
            f"The workspace {str(root)!r} cannot be opened: {why}.",
            hint=_guess_folder(root),
        ) from error
    if not real.is_dir():
        raise ConfigError(
            f"The workspace {str(root)!r} is not a folder.",
            hint="Choose the folder that contains it.",
        )
    if not is_text(str(real)):
        raise ConfigError(
            f"The workspace {str(root)!r} has a name that is not valid UTF-8.",
            hint="Rename the folder.",
        )
    if real == Path(real.anchor) or real == Path.home():
        raise ConfigError(
            f"{real} cannot be a workspace: it is your home folder or a whole disk.",
            hint="Choose the project's folder.",
        )
    if own_folders.contain(real):
        raise ConfigError(
            f"{real} cannot be a workspace: byok keeps its token and settings there.",
            hint="Choose the project's folder.",
        )
    user = getattr(os, "geteuid", lambda: facts.st_uid)()
    if user not in (0, facts.st_uid):
        raise ConfigError(f"The workspace {real} belongs to another user.")
    return real


def choose_root(roots: Sequence[str], workspace: str) -> str:
    """Return the innermost of the workspaces `roots` that contains a path of an agent.

    Without a path, return the only workspace.

    Raises:
        BadRequest: there is none, or several.
    """
    path = Path(workspace)
    if not workspace:
        containing = [*roots]
    elif not path.is_absolute() or "\0" in workspace:
        raise BadRequest("workspace must be an absolute path.", status=422)
    else:
        path = Path(os.path.realpath(path))
        containing = [root for root in roots if path.is_relative_to(root)]
    if not roots:
        raise BadRequest(NO_WORKSPACE, code="no_workspace", status=422)
    if not containing or (not workspace and len(containing) > 1):
        raise BadRequest(
            f"{path} is in no workspace." if workspace else "Name the workspace.",
            hint=f"There are: {', '.join(roots)}.",
            code="no_workspace",
            status=422,
        )
    return max(containing, key=len)


def _guess_folder(root: Path) -> str:
    """Return a hint that names a similar folder beside a missing one."""
    try:
        siblings = [path.name for path in root.parent.iterdir() if path.is_dir()]
    except (OSError, ValueError):
        siblings = []
    guess = did_you_mean(root.name, siblings)
    return guess or "Name the folder of a project, such as: byok index add ."


def _identity(path: str) -> tuple[int, int]:
    """Return device and inode, or zeros for a missing path."""
    try:
        facts = os.lstat(path)
    except (OSError, ValueError):
        return 0, 0
    return facts.st_dev, facts.st_ino
