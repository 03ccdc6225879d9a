"""List and remove the files that byok made, and no others.

Only known names count, in byok's own folders; nothing is followed through a link. A
folder goes when nothing else is in it, and only if byok made it: what `BYOK_HOME` names
is the user's.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from byok.core.platform.home import OWN_NAMES
from byok.core.platform.paths import Paths

_SETTINGS = ("config.toml", "prompts", "settings_backups")
_OTHERS = {"capture", "handover.json"}


def list_own_files(paths: Paths, *, with_settings: bool = True) -> list[Path]:
    """Return byok's files and folders, one level below its root folders.

    `with_settings` includes the settings, their backups and the user's prompts.
    """
    names = OWN_NAMES["state"] | OWN_NAMES["data"] | _OTHERS | {*_SETTINGS}
    if not with_settings:
        names -= {*_SETTINGS}
    known = "|".join(map(re.escape, sorted(names)))
    # `data.db-wal`, a copy that was set aside (`data.db.damaged`), a temporary file
    own = re.compile(rf"(?:{known})(?:[-.~].*)?|\.(?:{known})\.[a-z0-9_]{{8}}")
    return sorted(
        path
        for folder in paths.folders
        if folder.is_dir() and not folder.is_symlink()
        for path in folder.iterdir()
        if own.fullmatch(path.name) and path not in paths.folders
    )


def remove_own_files(paths: Paths, files: Iterable[Path]) -> list[Path]:
    """Remove these; return byok's folders that stay because others' files are there."""
    for path in files:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    kept: list[Path] = []
    for folder in reversed(paths.folders):
        if not folder.is_dir() or folder.is_symlink():
            continue
        if any(folder.iterdir()):
            kept.append(folder)
        elif folder.name in ("byok", "state", "data"):
            folder.rmdir()
    return kept
