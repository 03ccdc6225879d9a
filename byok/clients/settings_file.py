"""Read, replace and back up settings files of other programs.

Links are followed, as dotfile managers create them, but not out of the user's home.
"""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from byok.clients.locations import ClientKind
from byok.clients.settings_text import SettingPath
from byok.core.errors import ConfigError, from_os_error
from byok.core.escapes import shell_word
from byok.core.platform.paths import (
    READ_PLAIN,
    check_file,
    check_private,
    make_private,
    replace_foreign,
    sync_folder,
    write_private,
)

LARGEST = 5_000_000  # bytes
_VERSION = 1
_MAX_VERSIONS = 20  # of one file, or value, as byok wrote it
_MANIFEST, _BEFORE, _EDITED = "manifest.json", ".before", "edited"
_KEPT = ".kept"  # the suffix of a file's former content while that file is gone
_CURE = "Take the settings out by hand, and remove the folder."


class SettingsFile(Struct, frozen=True):
    """A settings file as it was read; `path` has no links, `raw` is None if missing."""

    path: Path
    raw: bytes | None


def read_settings_file(
    path: Path, home: Path, *, largest: int = LARGEST
) -> SettingsFile:
    """Read a settings file of at most `largest` bytes.

    Raises:
        ConfigError: it is not the user's own regular file, a link leads out of the home
            to it, it cannot be changed, or is too large; or its folder is missing.
    """
    target = _resolve(path, home)
    if not target.parent.is_dir():
        raise ConfigError(
            f"{target.parent} does not exist.",
            hint="Start the program once, so that it makes its folder, or make it "
            f"yourself: mkdir -p {shell_word(target.parent)}.",
        )
    try:
        raw = _read(target, largest)
    except FileNotFoundError:
        raw = None
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}.") from None
    return SettingsFile(target, raw)


def replace_settings_file(
    file: SettingsFile, content: bytes, *, private: bool = False
) -> None:
    """Replace the file, keeping its mode, owner and attributes; a new one is private.

    With `private`, only its owner may read the file from then on.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written.
    """
    try:
        replace_foreign(file.path, content, partial(_prepare, file, private))
    except OSError as error:
        path, cure = error.filename or file.path, from_os_error(error).hint
        if hasattr(error, "winerror"):
            cure = "Close the program that has it open, and try again."
        elif isinstance(error, PermissionError):  # of the folder, to rename a new file
            path, cure = file.path.parent, "Make it writable for you."
        raise ConfigError(
            f"{path}: {error.strerror}. Nothing was changed.", hint=cure
        ) from None


def remove_settings_file(file: SettingsFile) -> None:
    """Remove the file.

    Raises:
        ConfigError: it has changed since it was read.
    """
    check_unchanged(file)
    file.path.unlink()
    sync_folder(file.path.parent)


def check_unchanged(file: SettingsFile) -> None:
    """Check that the file has not changed since it was read.

    Raises:
        ConfigError: it has.
    """
    try:
        raw = _read(file.path, LARGEST)
    except FileNotFoundError:
        raw = None
    if raw != file.raw:
        raise ConfigError(
            f"{file.path} was changed by another program meanwhile; byok left it as it "
            "is.",
            hint="Run the command again.",
        )


def is_open_to_others(path: Path) -> bool:
    """Tell whether other users of this machine may read the file."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o044)


def _resolve(path: Path, home: Path) -> Path:
    """Return the path with links resolved; they must not lead out of the home."""
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - keeps links
    try:
        target, real_home = absolute.resolve(), home.resolve()
    except (OSError, RuntimeError):
        raise ConfigError(
            f"{absolute} is a link that leads nowhere.", hint="Remove it."
        ) from None
    if target.is_relative_to(real_home) or target == absolute:
        return target
    raise ConfigError(
        f"{absolute} leads to {target}, outside of your home; byok does not change it.",
        hint="Change it where it is made (Nix, dotfiles).",
    )


def _read(path: Path, largest: int) -> bytes:
    handle = os.open(path, READ_PLAIN)
    try:
        _check_status(path, os.fstat(handle))
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(largest + 1)
    finally:
        os.close(handle)
    if len(raw) > largest:
        raise ConfigError(
            f"{path} is larger than {largest:,} bytes, which no settings file is."
        )
    return raw


def _check_status(path: Path, status: os.stat_result) -> None:
    """Check that a path is a regular file of this user that may be replaced."""
    check_file(path, status, forbidden=0)
    if not status.st_mode & stat.S_IWUSR:
        raise ConfigError(
            f"{path} is read-only.",
            hint=f"Run: chmod u+w {shell_word(path)}.",
        )
    if status.st_nlink > 1:
        raise ConfigError(
            f"{path} has a second name (a hard link), which would keep the old text."
        )


def _prepare(file: SettingsFile, private: bool, temporary: Path) -> None:
    """Give the temporary file the group, mode and attributes of the old file."""
    check_unchanged(file)
    if file.raw is None:
        return  # a new file stays private: it holds the client token
    status = file.path.stat()
    if hasattr(os, "chown") and temporary.stat().st_gid != status.st_gid:
        os.chown(temporary, -1, status.st_gid)
    shutil.copystat(file.path, temporary)
    if private:
        temporary.chmod(0o600)
    os.utime(temporary)  # programs notice a changed file by its time


class Backup(Struct, frozen=True):
    """A settings file that byok has changed, and its former content.

    `before` is the content before byok, None if there was no file. `after` are the
    digests of the contents that byok wrote, the newest last; `values` are the digests
    of the values that byok wrote for each setting.
    """

    client: ClientKind
    path: Path
    before: bytes | None
    after: tuple[str, ...] = ()
    values: dict[SettingPath, frozenset[str]] = field(default_factory=dict)

    def with_written(self, after: bytes, values: dict[SettingPath, str]) -> "Backup":
        """Return a copy that has one more content that byok wrote, with its values."""
        merged = dict(self.values)
        for path, digest in values.items():
            digests = sorted(merged.get(path, frozenset()) - {digest})
            merged[path] = frozenset([*digests[: _MAX_VERSIONS - 1], digest])
        others = [digest for digest in self.after if digest != bytes_digest(after)]
        newest = (*others[1 - _MAX_VERSIONS :], bytes_digest(after))
        return replace(self, after=newest, values=merged)


def bytes_digest(raw: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(raw).hexdigest()


class BackupStore:
    """The backups in one of byok's folders, each in a subfolder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock settings files and backups against other processes of byok."""
        from filelock import FileLock

        make_private(self._folder.parent)
        with FileLock(self._folder.with_name(f"{self._folder.name}.lock"), mode=0o600):
            yield

    def find(self, client: ClientKind, path: Path) -> Backup | None:
        """Return the backup of a file, if byok has changed it.

        Raises:
            ConfigError: the backup cannot be read, or is damaged.
        """
        folder = self._folder_of(client, path)
        return _read_backup(folder) if (folder / _MANIFEST).exists() else None

    def list_paths(self, client: ClientKind) -> list[Path]:
        """Return the files of a client that byok has changed."""
        manifests = self._folder.glob(f"{client}-*/{_MANIFEST}")
        backups = [_read_backup(manifest.parent) for manifest in manifests]
        return sorted(backup.path for backup in backups if backup.client == client)

    def save(self, backup: Backup, current: bytes | None) -> None:
        """Write a backup before its file is changed; `current` is the file's content.

        If the file is gone (None), an earlier backup may be the only copy, and is kept.
        """
        folder = self._folder_of(backup.client, backup.path)
        if current is not None and current != backup.before:
            write_private(folder / _EDITED, current)
        if backup.before is not None:
            write_private(_content_file(folder, backup.before), backup.before)
        manifest = {
            "version": _VERSION,
            "client": backup.client,
            "path": str(backup.path),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "before": None if backup.before is None else bytes_digest(backup.before),
            "after": backup.after,
            "values": [
                {"path": path, "digests": sorted(digests)}
                for path, digests in backup.values.items()
            ],
        }
        raw = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
        write_private(folder / _MANIFEST, raw)
        for old in folder.glob(f"*{_BEFORE}"):
            if backup.before is None or old != _content_file(folder, backup.before):
                if current is None:
                    _keep(old)
                else:
                    old.unlink()

    def remove(self, client: ClientKind, path: Path, *, is_gone: bool = False) -> None:
        """Remove the backup of a file that was restored.

        If the file `is_gone`, copies of its former content are kept.
        """
        folder = self._folder_of(client, path)
        if is_gone:
            for old in (*folder.glob(f"*{_BEFORE}"), *folder.glob(_EDITED)):
                _keep(old)
        for file in (folder / _MANIFEST, folder / _EDITED, *folder.glob(f"*{_BEFORE}")):
            file.unlink(missing_ok=True)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            sync_folder(folder.parent)

    def kept_copies(self, client: ClientKind, path: Path) -> list[Path]:
        """Return the copies of a file that was gone when it should be restored."""
        return sorted(self._folder_of(client, path).glob(f"*{_KEPT}"))

    def _folder_of(self, client: ClientKind, path: Path) -> Path:
        return self._folder / f"{client}-{bytes_digest(str(path).encode())[:16]}"


def _content_file(folder: Path, content: bytes) -> Path:
    """Return the path for a content; the manifest has the digest of the valid one."""
    return folder / f"{bytes_digest(content)}{_BEFORE}"


def _keep(old: Path) -> None:
    old.replace(old.with_suffix(_KEPT))


def _read_backup(folder: Path) -> Backup:
    manifest = folder / _MANIFEST
    check_private(manifest, _CURE)
    try:
        return _decode(orjson.loads(manifest.read_bytes()), folder)
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        raise ConfigError(f"{manifest} is damaged.", hint=_CURE) from None


def _decode(manifest: dict[str, Any], folder: Path) -> Backup:
    before = None
    if manifest["before"] is not None:
        file = folder / f"{str(manifest['before'])[:64]}{_BEFORE}"
        check_private(file, _CURE)
        before = file.read_bytes()
        if bytes_digest(before) != manifest["before"]:
            raise ConfigError(f"{file} is damaged.", hint=_CURE)
    return Backup(
        ClientKind(manifest["client"]),
        Path(manifest["path"]),
        before,
        tuple(map(str, manifest["after"])),
        {
            tuple(map(str, row["path"])): frozenset(map(str, row["digests"]))
            for row in manifest["values"]
        },
    )
