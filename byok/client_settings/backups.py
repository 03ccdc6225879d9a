"""Settings files as they were before byok changed them, and what byok wrote."""

import hashlib
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from byok.client_settings.client_kind import ClientKind
from byok.client_settings.setting import SettingPath
from byok.errors import ConfigError
from byok.platform.paths import check_private, sync_folder, write_private

_VERSION = 1
_MOST_VERSIONS = 20  # of one file, or value, as byok wrote it
_MANIFEST, _BEFORE, _EDITED = "manifest.json", ".before", "edited"
_KEPT = ".kept"  # what a file was before byok, while that file is gone
_CURE = "Take the settings out by hand, and remove the folder."


@dataclass(frozen=True, slots=True)
class Backup:
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

    def find(self, client: ClientKind, path: Path) -> Backup | None:
        """Return the backup of a file, if byok has changed it.

        Raises:
            ConfigError: the backup cannot be read, or is damaged.
        """
        place = self._place(client, path)
        return _read(place) if (place / _MANIFEST).exists() else None

    def list_paths(self, client: ClientKind) -> list[Path]:
        """Return the files of a client that byok has changed."""
        manifests = self._folder.glob(f"{client}-*/{_MANIFEST}")
        backups = [_read(manifest.parent) for manifest in manifests]
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


def _read(place: Path) -> Backup:
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
