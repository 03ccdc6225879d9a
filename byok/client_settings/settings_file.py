"""Read and replace a settings file that belongs to another program.

A link is followed, as managers of dotfiles make them, but not out of the user's home.
"""

import os
import shutil
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from byok.errors import ConfigError
from byok.escapes import shell_word
from byok.platform.paths import replace_foreign, sync_folder

LARGEST = 5_000_000  # bytes
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
BY_HAND = "Or make the change by hand: byok connect prints it without --write."


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file as it was read; `path` has no links, `raw` is None if missing."""

    path: Path
    raw: bytes | None


def read_settings_file(
    path: Path, home: Path, *, largest: int = LARGEST
) -> SettingsFile:
    """Read a settings file of at most `largest` bytes.

    Raises:
        ConfigError: it is not the user's own plain file, a link leads out of the home
            to it, it cannot be changed, or is too large; or its folder is missing.
    """
    target = _resolve(path, home)
    if not target.parent.is_dir():
        raise ConfigError(
            f"{target.parent} does not exist.",
            hint="Start the program once, so that it makes its folder, or name its "
            "settings file: --file PATH",
        )
    try:
        raw = _read(target, largest)
    except FileNotFoundError:
        raw = None
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}.", hint=BY_HAND) from None
    return SettingsFile(target, raw)


def replace_settings_file(file: SettingsFile, content: bytes) -> None:
    """Replace the file, with its mode, owner and attributes; a new one is private.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written.
    """
    try:
        replace_foreign(file.path, content, partial(_prepare, file))
    except OSError as error:
        where = error.filename or file.path
        raise ConfigError(
            f"{where}: {error.strerror}. Nothing was changed.",
            hint=f"Close the program that has it open, and try again. {BY_HAND}",
        ) from None


def remove_settings_file(file: SettingsFile) -> None:
    """Remove the file, if it still is as it was read.

    Raises:
        ConfigError: it is not.
    """
    check_unchanged(file)
    file.path.unlink()
    sync_folder(file.path.parent)


def check_unchanged(file: SettingsFile) -> None:
    """Check that the file is as it was read.

    Raises:
        ConfigError: it is not.
    """
    try:
        now = _read(file.path, LARGEST)
    except FileNotFoundError:
        now = None
    if now != file.raw:
        raise ConfigError(
            f"{file.path} was changed by another program meanwhile; byok left it as it "
            "is.",
            hint="Run the command again.",
        )


def is_open_to_others(path: Path) -> bool:
    """Tell whether other users of this machine may read the file."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o044)


def _resolve(path: Path, home: Path) -> Path:
    """Return the path without links; outside of the home there may be none."""
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - no links yet
    try:
        target, within = absolute.resolve(), home.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(
            f"{absolute} is a link that leads nowhere.", hint=f"Remove it. {BY_HAND}"
        ) from None
    if target.is_relative_to(within) or target == absolute:
        return target
    raise ConfigError(
        f"{absolute} leads to {target}, outside of your home; byok does not change it.",
        hint="Change it where it is made (Nix, dotfiles), or name the file "
        f"itself: --file PATH. {BY_HAND}",
    )


def _read(path: Path, largest: int) -> bytes:
    handle = os.open(path, _READ)
    try:
        _check_facts(path, os.fstat(handle), largest)
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(largest + 1)
    finally:
        os.close(handle)
    if len(raw) > largest:
        raise _too_large(path, largest)
    return raw


def _check_facts(path: Path, facts: os.stat_result, largest: int) -> None:
    """Refuse what is no plain file of this user that may be replaced."""
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{path} is no plain file.", hint=BY_HAND)
    if hasattr(os, "geteuid") and facts.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to another user.",
            hint="Run byok as that user, without sudo.",
        )
    if not facts.st_mode & stat.S_IWUSR:
        raise ConfigError(
            f"{path} is read-only.",
            hint=f"Run: chmod u+w {shell_word(path)}. {BY_HAND}",
        )
    if facts.st_nlink > 1:
        raise ConfigError(
            f"{path} has a second name (a hard link), which would keep the old text.",
            hint=BY_HAND,
        )
    if facts.st_size > largest:
        raise _too_large(path, largest)


def _too_large(path: Path, largest: int) -> ConfigError:
    return ConfigError(
        f"{path} is larger than {largest:,} bytes, which no settings file is.",
        hint=BY_HAND,
    )


def _prepare(file: SettingsFile, temporary: Path) -> None:
    """Make a temporary file like the old one, if that is unchanged."""
    check_unchanged(file)
    if file.raw is None:
        return  # only its owner may read a new file: it holds the client token
    facts = file.path.stat()
    if hasattr(os, "chown") and temporary.stat().st_gid != facts.st_gid:
        os.chown(temporary, -1, facts.st_gid)
    shutil.copystat(file.path, temporary)
    os.utime(temporary)  # programs notice a new file by its time
