"""Read the user's settings file, and replace it after a backup."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from byok.client_settings.settings_file import (
    SettingsFile,
    read_settings_file,
    replace_settings_file,
)
from byok.platform.paths import Paths, make_private, write_private

_BACKUPS = "settings_backups"


def read_own_settings(paths: Paths, home: Path) -> SettingsFile:
    """Read the settings file; nothing is made where it is missing.

    Raises:
        ConfigError: it is not the user's own plain file, or cannot be changed.
    """
    if not paths.config.parent.is_dir():
        return SettingsFile(paths.config, None)
    return read_settings_file(paths.config, home)


def write_own_settings(
    paths: Paths,
    file: SettingsFile,
    content: bytes,
    clock: Callable[[], float] = time.time,
) -> Path | None:
    """Replace the settings file atomically; return where the former one was saved.

    Only the owner may read it from then on.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written.
    """
    backup = None
    if file.raw is None:
        make_private(file.path.parent)
    else:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock()))
        backup = paths.state_dir / _BACKUPS / f"config-{stamp}.toml"
        write_private(backup, file.raw)
    replace_settings_file(file, content)
    if os.name == "posix":
        file.path.chmod(0o600)
    return backup
