"""Ignore rules that apply to a workspace and are stored outside of it.

As in git: the user's global ignore file, the `info/exclude` of this clone, and the
ignore files in the folders between the top of the repository and the workspace. No
program is run in a repository, and its configuration is not read: it is not trusted.
"""

import logging
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from byok.index.files.repository import load, repository_of
from byok.platform.programs import clean_environment, find_program

_log = logging.getLogger(__name__)
_SECONDS = 5.0
_ASK = ("config", "--global", "--type=path", "--get", "core.excludesFile")
_HOMES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "USERPROFILE")


class Outside(NamedTuple):
    """An ignore file; `below` is the workspace's path in the folder it holds for."""

    name: str
    content: bytes
    below: str


def rules_outside(root: Path, names: tuple[str, ...]) -> list[Outside]:
    """Return the ignore files outside a workspace, those that win last.

    `names` are those that ignore files have in every folder. None where the workspace
    is in no repository.
    """
    found = [
        Outside(str(path), load(path) or b"", below)
        for path, below in places_outside(root, names)
    ]
    return [rules for rules in found if rules.content]


def places_outside(root: Path, names: tuple[str, ...]) -> list[tuple[Path, str]]:
    """Return where `rules_outside` looks, and the workspace's path below that."""
    repository = repository_of(root)
    if repository is None:
        return []
    top = repository.top
    at_top = root.relative_to(top).as_posix() if root != top else ""
    found = [(repository.exclude, at_top)]
    if own := _of_user(root):
        found.insert(0, (own, at_top))
    above = [at for at in reversed(root.parents) if at.is_relative_to(top)]
    return found + [
        (at / name, root.relative_to(at).as_posix()) for at in above for name in names
    ]


def _of_user(root: Path) -> Path | None:
    """Return the user's own ignore file for all repositories, as git finds it."""
    path = _global_ignore_file(root)
    if path is None:
        settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        path = Path(settings, "git", "ignore")
    try:
        return path.resolve(strict=True)  # people link it to where they keep such files
    except (OSError, RuntimeError):
        return None


def _global_ignore_file(root: Path) -> Path | None:
    """Return what the user's own configuration names; git reads it for us."""
    git = find_program("git", never=[root])
    if git is None:
        return None
    homes = {name: os.environ[name] for name in _HOMES if name in os.environ}
    try:
        ran = subprocess.run(  # noqa: S603 - an absolute path, no shell
            [git, *_ASK],
            cwd=Path.home().anchor,
            env=clean_environment({"GIT_CONFIG_NOSYSTEM": "1", **homes}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.warning("git did not tell of core.excludesFile: %s", error)
        return None
    told = Path(os.fsdecode(ran.stdout.rstrip(b"\n")))
    return told if told.is_absolute() else None
