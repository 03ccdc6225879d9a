"""Point a client's settings file at byok, and undo that."""

from dataclasses import dataclass
from pathlib import Path

from byok.client_settings.backups import Backup, BackupStore
from byok.client_settings.client_kind import ClientKind
from byok.client_settings.document import (
    TextFormat,
    put_all,
    take_out,
    value_digest,
)
from byok.client_settings.encoding import decode_text, encode_text
from byok.client_settings.setting import SettingPath
from byok.client_settings.settings_file import (
    LARGEST,
    SettingsFile,
    check_unchanged,
    read_settings_file,
    remove_settings_file,
    replace_settings_file,
)
from byok.client_settings.wanted_settings import FORMATS, DaemonAddress, settings_for
from byok.errors import ConfigError

_LARGEST_SLOW = 250_000  # bytes; with TOML or YAML they take seconds


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of a settings file that is not made yet.

    `after` is None if the file is to be removed. `changed` are settings of byok that
    somebody has changed since, and that stay. `backup` is what will be saved, or None
    where the one that there is will be removed.
    """

    client: ClientKind
    file: SettingsFile
    after: bytes | None
    backup: Backup | None = None
    changed: tuple[SettingPath, ...] = ()
    is_exact: bool = True

    @property
    def is_needed(self) -> bool:
        """Whether it changes the file at all."""
        return self.after != self.file.raw


@dataclass(frozen=True, slots=True)
class FileConnector:
    """Plans changes of settings files below a home."""

    backups: BackupStore
    home: Path
    windows: bool = False

    def plan_connect(
        self, client: ClientKind, path: Path, daemon: DaemonAddress
    ) -> FileChange:
        """Plan to write byok's settings to a file.

        Raises:
            ConfigError: the file cannot be read or changed; the hint says what to do.
        """
        file = self._read(client, path)
        backup = self.backups.find(client, file.path)
        before = file.raw
        if backup and file.raw is not None:
            before = _undo(client, file, backup)[0]
        try:
            old = decode_text(file.raw or b"")
            settings = settings_for(client, daemon, old.text, windows=self.windows)
            new = old._replace(text=put_all(old.text, settings, FORMATS[client]))
        except ValueError as error:
            raise _unfit(file, error) from None
        after = encode_text(new)
        backup = backup or Backup(client, file.path, before)
        if before != backup.before:
            backup = Backup(client, file.path, before, values=backup.values)
        digests = {path: value_digest(value) for path, value in settings}
        return FileChange(client, file, after, backup.with_written(after, digests))

    def plan_disconnect(self, client: ClientKind, path: Path) -> FileChange:
        """Plan to remove byok's settings from a file.

        Raises:
            ConfigError: byok has not written there, or as in `plan_connect`.
        """
        if not path.parent.is_dir():
            raise ConfigError(
                f"There is nothing to undo: {path.parent} does not exist."
            )
        file = self._read(client, path)
        backup = self.backups.find(client, file.path)
        if backup is None:
            raise ConfigError(
                f"byok has not changed {file.path}.",
                hint=f"byok connect {client} prints the settings to look for.",
            )
        if file.raw is None:
            return FileChange(client, file, None)
        after, changed = _undo(client, file, backup)
        return FileChange(
            client,
            file,
            after,
            changed=changed,
            is_exact=after == backup.before,
        )

    def carry_out(self, change: FileChange) -> None:
        """Make a change; the backup is saved before the file is touched.

        Raises:
            ConfigError: the file has changed meanwhile, or cannot be written.
        """
        if change.backup is not None:
            self._connect(change, change.backup)
            return
        if change.is_needed and change.after is None:
            remove_settings_file(change.file)
        elif change.is_needed and change.after is not None:
            replace_settings_file(change.file, change.after)
        is_gone = change.file.raw is None
        self.backups.remove(change.client, change.file.path, is_gone=is_gone)

    def _connect(self, change: FileChange, backup: Backup) -> None:
        if not change.is_needed or change.after is None:
            return
        check_unchanged(change.file)  # else the backup would be one of another text
        is_first = self.backups.find(change.client, change.file.path) is None
        self.backups.save(backup, change.file.raw)
        try:
            replace_settings_file(change.file, change.after)
        except ConfigError:
            if is_first:  # the file is untouched, so there is nothing to go back to
                self.backups.remove(change.client, change.file.path)
            raise

    def _read(self, client: ClientKind, path: Path) -> SettingsFile:
        largest = LARGEST if FORMATS[client] is TextFormat.JSONC else _LARGEST_SLOW
        return read_settings_file(path, self.home, largest=largest)


def _undo(
    client: ClientKind, file: SettingsFile, backup: Backup
) -> tuple[bytes | None, tuple[SettingPath, ...]]:
    """Return the file without byok's settings, and those that others changed."""
    raw = file.raw or b""
    if backup.is_as_written(raw) or raw == backup.before:
        return backup.before, ()
    try:
        base = decode_text(backup.before or b"")
        now = decode_text(raw)
        taken = take_out(now.text, base.text, backup.values.items(), FORMATS[client])
    except ValueError as error:
        raise _unfit(file, error) from None
    return encode_text(now._replace(text=taken.text)), taken.changed


def _unfit(file: SettingsFile, error: ValueError) -> ConfigError:
    return ConfigError(
        f"{file.path}: {error}. Nothing was changed.",
        hint="Correct it in the program it belongs to, and try again; or change it by "
        "hand: byok connect prints the settings without --write.",
    )
