"""Settings files of other programs: read, replaced, and kept as they were before.

A link is followed, as managers of dotfiles make them, but not out of the user's home.
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

from byok.clients.editor import SettingPath
from byok.clients.locations import ClientKind
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


class SettingsFile(Struct, frozen=True):
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
            hint="Start the program once, so that it makes its folder.",
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
    """Replace the file, with its mode, owner and attributes; a new one is private.

    If it is to be `private`, only its owner may read it from then on.

    Raises:
        ConfigError: it has changed since it was read, or cannot be written.
    """
    try:
        replace_foreign(file.path, content, partial(_prepare, file, private))
    except OSError as error:
        where, cure = error.filename or file.path, from_os_error(error).hint
        if hasattr(error, "winerror"):
            cure = "Close the program that has it open, and try again."
        elif isinstance(error, PermissionError):  # a new file takes its place
            where, cure = file.path.parent, "Make it writable for you."
        raise ConfigError(
            f"{where}: {error.strerror}. Nothing was changed.", hint=cure
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
            f"{absolute} is a link that leads nowhere.", hint="Remove it."
        ) from None
    if target.is_relative_to(within) or target == absolute:
        return target
    raise ConfigError(
        f"{absolute} leads to {target}, outside of your home; byok does not change it.",
        hint="Change it where it is made (Nix, dotfiles).",
    )


def _read(path: Path, largest: int) -> bytes:
    handle = os.open(path, READ_PLAIN)
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
    check_file(path, facts, forbidden=0)
    if not facts.st_mode & stat.S_IWUSR:
        raise ConfigError(
            f"{path} is read-only.",
            hint=f"Run: chmod u+w {shell_word(path)}.",
        )
    if facts.st_nlink > 1:
        raise ConfigError(
            f"{path} has a second name (a hard link), which would keep the old text."
        )
    if facts.st_size > largest:
        raise _too_large(path, largest)


def _too_large(path: Path, largest: int) -> ConfigError:
    return ConfigError(
        f"{path} is larger than {largest:,} bytes, which no settings file is."
    )


def _prepare(file: SettingsFile, private: bool, temporary: Path) -> None:
    """Make a temporary file like the old one, if that is unchanged."""
    check_unchanged(file)
    if file.raw is None:
        return  # only its owner may read a new file: it holds the client token
    facts = file.path.stat()
    if hasattr(os, "chown") and temporary.stat().st_gid != facts.st_gid:
        os.chown(temporary, -1, facts.st_gid)
    shutil.copystat(file.path, temporary)
    if private:
        temporary.chmod(0o600)
    os.utime(temporary)  # programs notice a new file by its time


# Settings files as they were before byok changed them, and what byok wrote.


_VERSION = 1
_MOST_VERSIONS = 20  # of one file, or value, as byok wrote it
_MANIFEST, _BEFORE, _EDITED = "manifest.json", ".before", "edited"
_KEPT = ".kept"  # what a file was before byok, while that file is gone
_CURE = "Take the settings out by hand, and remove the folder."


class Backup(Struct, frozen=True):
    """A settings file that byok has changed.

    `before` is its content before that, None if there was no file. `after` are the
    digests of what byok made of it, the newest last; `values` those of each setting.
    """

    client: ClientKind
    path: Path
    before: bytes | None
    after: tuple[str, ...] = ()
    values: dict[SettingPath, frozenset[str]] = field(default_factory=dict)

    def with_written(self, after: bytes, values: dict[SettingPath, str]) -> "Backup":
        """Return a copy that knows of one more text that byok wrote."""
        merged = dict(self.values)
        for path, digest in values.items():
            known = sorted(merged.get(path, frozenset()) - {digest})
            merged[path] = frozenset([*known[: _MOST_VERSIONS - 1], digest])
        others = [known for known in self.after if known != bytes_digest(after)]
        newest = (*others[1 - _MOST_VERSIONS :], bytes_digest(after))
        return replace(self, after=newest, values=merged)

    def is_as_written(self, raw: bytes) -> bool:
        """Tell whether a file is exactly as byok wrote it."""
        return bytes_digest(raw) in self.after


def bytes_digest(raw: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(raw).hexdigest()


class BackupStore:
    """The backups in a folder of byok's; each has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes of byok from changing files and backups meanwhile."""
        from filelock import FileLock

        make_private(self._folder.parent)
        with FileLock(self._folder.with_name(f"{self._folder.name}.lock"), mode=0o600):
            yield

    def find(self, client: ClientKind, path: Path) -> Backup | None:
        """Return the backup of a file, if byok has changed it.

        Raises:
            ConfigError: the backup cannot be read, or is damaged.
        """
        place = self._place(client, path)
        return _read_backup(place) if (place / _MANIFEST).exists() else None

    def list_paths(self, client: ClientKind) -> list[Path]:
        """Return the files of a client that byok has changed."""
        manifests = self._folder.glob(f"{client}-*/{_MANIFEST}")
        backups = [_read_backup(manifest.parent) for manifest in manifests]
        return sorted(backup.path for backup in backups if backup.client == client)

    def save(self, backup: Backup, current: bytes | None) -> None:
        """Write a backup before its file is changed; `current` is the file now.

        If there is no file, an earlier backup may be the only copy, and is kept.
        """
        place = self._place(backup.client, backup.path)
        if current is not None and current != backup.before:
            write_private(place / _EDITED, current)
        if backup.before is not None:
            write_private(_content_file(place, backup.before), backup.before)
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
        write_private(place / _MANIFEST, raw)
        for old in place.glob(f"*{_BEFORE}"):
            if backup.before is None or old != _content_file(place, backup.before):
                if current is None:
                    _keep(old)
                else:
                    old.unlink()

    def remove(self, client: ClientKind, path: Path, *, is_gone: bool = False) -> None:
        """Remove the backup of a file, which is back as it was.

        If the file `is_gone`, only byok forgets it: its former content is kept.
        """
        place = self._place(client, path)
        if is_gone:
            for old in (*place.glob(f"*{_BEFORE}"), *place.glob(_EDITED)):
                _keep(old)
        for file in (place / _MANIFEST, place / _EDITED, *place.glob(f"*{_BEFORE}")):
            file.unlink(missing_ok=True)
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
            sync_folder(place.parent)

    def kept_copies(self, client: ClientKind, path: Path) -> list[Path]:
        """Return the copies of a file that was gone when byok was to give it back."""
        return sorted(self._place(client, path).glob(f"*{_KEPT}"))

    def _place(self, client: ClientKind, path: Path) -> Path:
        return self._folder / f"{client}-{bytes_digest(str(path).encode())[:16]}"


def _content_file(place: Path, content: bytes) -> Path:
    """Return a name of its own for each content: the manifest tells which counts."""
    return place / f"{bytes_digest(content)}{_BEFORE}"


def _keep(old: Path) -> None:
    old.replace(old.with_suffix(_KEPT))


def _read_backup(place: Path) -> Backup:
    manifest = place / _MANIFEST
    check_private(manifest, _CURE)
    try:
        return _decode(orjson.loads(manifest.read_bytes()), place)
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        raise ConfigError(f"{manifest} is damaged.", hint=_CURE) from None


def _decode(facts: dict[str, Any], place: Path) -> Backup:
    before = None
    if facts["before"] is not None:
        file = place / f"{str(facts['before'])[:64]}{_BEFORE}"
        check_private(file, _CURE)
        before = file.read_bytes()
        if bytes_digest(before) != facts["before"]:
            raise ConfigError(f"{file} is damaged.", hint=_CURE)
    return Backup(
        ClientKind(facts["client"]),
        Path(facts["path"]),
        before,
        tuple(map(str, facts["after"])),
        {
            tuple(map(str, row["path"])): frozenset(map(str, row["digests"]))
            for row in facts["values"]
        },
    )
