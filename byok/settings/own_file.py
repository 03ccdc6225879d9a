"""Read the user's settings file, and replace it after a backup."""

import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from byok.clients.settings_file import (
    SettingsFile,
    read_settings_file,
    replace_settings_file,
)
from byok.core.errors import ConfigError
from byok.core.platform.paths import Paths, check_file, make_private, write_private
from byok.settings.loading import LARGEST, WRITABLE_BY_OTHERS, decode_settings

_BACKUPS = "settings_backups"
_BACKUP = re.compile(r"config-\d{8}T\d{6}Z\.toml")
_MAX_BACKUPS = 50


def read_own_settings(
    path: Path, home: Path, *, follows_link: bool = True
) -> SettingsFile:
    """Read the settings file; a missing one is not created.

    A link inside the home is followed, unless `follows_link` is False.

    Raises:
        ConfigError: it is not the user's own regular file, or cannot be changed.
    """
    if not path.parent.is_dir():
        return SettingsFile(path, None)
    if path.is_symlink() and not follows_link:
        raise ConfigError(
            f"{path} is a link.",
            hint="Change the file that it leads to; byok uses it within seconds.",
        )
    file = read_settings_file(path, home, largest=LARGEST)
    if file.raw is not None:  # a rewrite would make other users' changes trusted
        with suppress(FileNotFoundError):  # removed since; the write will be refused
            check_file(file.path, file.path.stat(), WRITABLE_BY_OTHERS)
    return file


def write_own_settings(
    paths: Paths,
    file: SettingsFile,
    content: bytes,
    clock: Callable[[], float] = time.time,
) -> Path | None:
    """Replace the settings file atomically; return the backup of the former one.

    Only the owner may read the file from then on. The last 50 backups are kept.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written, or byok
            could not read the content again.
    """
    decode_settings(content, file.path)
    backup = None
    if file.raw is None:
        make_private(file.path.parent)
    else:
        backup = _free_name(paths.state_dir / _BACKUPS, clock())
        try:
            write_private(backup, file.raw)
        except OSError as error:
            raise ConfigError(
                f"{backup}: {error.strerror}. Nothing was changed.",
                hint="The settings are saved there before they are changed.",
            ) from None
        _remove_old(backup.parent)
    replace_settings_file(file, content, private=True)
    return backup


def _free_name(folder: Path, moment: float) -> Path:
    """Return a path for a backup; if the second is taken, that of a later second."""
    while True:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(moment))
        path = folder / f"config-{stamp}.toml"
        if not os.path.lexists(path):
            return path
        moment += 1


def _remove_old(folder: Path) -> None:
    """Remove the oldest backups; files with other names stay."""
    backups = sorted(
        (path for path in folder.iterdir() if _BACKUP.fullmatch(path.name)),
        reverse=True,
    )
    for path in backups[_MAX_BACKUPS:]:
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink(missing_ok=True)
