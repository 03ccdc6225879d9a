"""Which folders may be workspaces, and the ignore rules of a workspace."""

import os
from functools import partial
from pathlib import Path

from byok.errors import ConfigError
from byok.index.files.git_rules import rules_outside
from byok.index.files.ignore import IGNORE_FILES, Rules
from byok.index.files.reading import Folder, Unreadable
from byok.index.options import IndexOptions


def rules_of(root: Path, options: IndexOptions) -> Rules:
    """Return the ignore rules of a workspace; byok's own folders are left out."""
    return Rules(
        partial(_ignore_file, root),
        outside=partial(rules_outside, root, IGNORE_FILES),
        allow_secret=options.allow_secret,
        extensions=options.extensions,
        own=[
            folder.relative_to(root).as_posix()
            for folder in options.own_folders
            if folder.is_relative_to(root) and folder != root
        ],
    )


def _ignore_file(root: Path, path: str) -> bytes | None:
    """Read an ignore file of a workspace, if there is one."""
    try:
        with Folder(root) as folder:
            return folder.load(path)
    except Unreadable:
        return None


def check_root(root: Path) -> Path:
    """Return the resolved path of a folder that may be a workspace.

    Raises:
        ConfigError: it is not a folder, a whole disk or home, or another user's.
    """
    try:
        real = root.expanduser().resolve(strict=True)
        facts = real.stat()
    except (OSError, RuntimeError, ValueError) as error:
        why = "there is no such folder" if isinstance(error, FileNotFoundError) else ""
        why = why or getattr(error, "strerror", None) or "its path is broken"
        raise ConfigError(
            f"The workspace {str(root)!r} cannot be opened: {why}."
        ) from error
    if not real.is_dir():
        raise ConfigError(
            f"The workspace {str(root)!r} is not a folder.",
            hint="Choose the folder that contains it.",
        )
    if real == Path(real.anchor) or real == Path.home():
        raise ConfigError(
            f"{real} cannot be a workspace: it is your home folder or a whole disk.",
            hint="Choose the project's folder.",
        )
    own = getattr(os, "geteuid", lambda: facts.st_uid)()
    if own not in (0, facts.st_uid):
        raise ConfigError(f"The workspace {real} belongs to another user.")
    return real
