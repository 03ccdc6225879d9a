"""Which folders may be workspaces."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from byok.core.errors import BadRequest, ConfigError
from byok.core.escapes import is_text
from byok.core.suggest import did_you_mean

_Identity: TypeAlias = tuple[int, int]


class OwnFolders:
    """byok's own folders, which hold its token and settings and are never read as code.

    They are recognised under every name: by their path, and by what they are (device
    and inode), so also through links, other spellings of letters, and mounts.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._paths = frozenset(map(os.path.realpath, folders))
        self._known = dict(self._identities())

    def contain(self, place: Path) -> bool:
        """Tell whether a folder is one of byok's, or lies in one."""
        real = Path(os.path.realpath(place))
        return any(map(self.include, map(str, (real, *real.parents))))

    def include(self, place: str) -> bool:
        """Tell whether a folder is one of byok's, or of those that lay in them."""
        if place in self._paths:
            return True
        known = self._known.get(_identity(place))
        # An inode may have been given to another folder since.
        return known is not None and _identity(known) == _identity(place)

    def _identities(self) -> Iterator[tuple[_Identity, str]]:
        for top in self._paths:
            for folder, _, _ in os.walk(top):
                yield _identity(folder), folder


def _identity(place: str) -> _Identity:
    """Return device and inode, or zeros for what is not there."""
    try:
        facts = os.lstat(place)
    except (OSError, ValueError):
        return 0, 0
    return facts.st_dev, facts.st_ino


def _guess_folder(root: Path) -> str:
    """Return a hint to the folder beside it that may be meant."""
    try:
        beside = [one.name for one in root.parent.iterdir() if one.is_dir()]
    except (OSError, ValueError):
        beside = []
    guess = did_you_mean(root.name, beside)
    return guess or "Name the folder of a project, such as: byok index add ."


def check_root(root: Path, own: OwnFolders) -> Path:
    """Return the resolved path of a folder that may be a workspace.

    Raises:
        ConfigError: it is not a folder, a whole disk or home, another user's, or
            byok's own, or has a name that neither JSON nor SQLite can hold.
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
    if own.contain(real):
        raise ConfigError(
            f"{real} cannot be a workspace: byok keeps its token and settings there.",
            hint="Choose the project's folder.",
        )
    user = getattr(os, "geteuid", lambda: facts.st_uid)()
    if user not in (0, facts.st_uid):
        raise ConfigError(f"The workspace {real} belongs to another user.")
    return real


NO_WORKSPACE = "byok has no workspace yet: `byok index add DIR` adds one."


def choose_root(known: Sequence[str], workspace: str) -> str:
    """Return the innermost workspace around what an agent named, or the only one.

    Raises:
        BadRequest: there is none, or several.
    """
    place = Path(workspace)
    if not workspace:
        around = [*known]
    elif not place.is_absolute() or "\0" in workspace:
        raise BadRequest("workspace must be an absolute path.", status=422)
    else:
        place = Path(os.path.realpath(place))
        around = [root for root in known if place.is_relative_to(root)]
    if not known:
        raise BadRequest(NO_WORKSPACE, code="no_workspace", status=422)
    if not around or (not workspace and len(around) > 1):
        raise BadRequest(
            f"{place} is in no workspace." if workspace else "Name the workspace.",
            hint=f"There are: {', '.join(known)}.",
            code="no_workspace",
            status=422,
        )
    return max(around, key=len)
