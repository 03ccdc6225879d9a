"""The settings file as the page sees it: a form, previews of changes, a new text."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byok.chat import Json
from byok.client_settings.backups import bytes_digest
from byok.client_settings.setting import SettingPath
from byok.client_settings.settings_file import SettingsFile
from byok.config import Settings
from byok.config.faults import SettingFault, faults_of
from byok.config.loading import decode_settings
from byok.config.own_file import read_own_settings, write_own_settings
from byok.config.sources import environment_values
from byok.dashboard.settings_change import Change, Outcome, Tables, apply_changes
from byok.dashboard.settings_form import SettingsState, make_form
from byok.dashboard.settings_lines import changed_lines
from byok.errors import BadRequest, ConfigError
from byok.platform.paths import Paths

_MOST_LINES = 1000


class SettingsPage(NamedTuple):
    """The settings file of a daemon; `judge` makes settings of what it may say.

    `find_moves` returns what is wrong with changes of what it says.
    """

    file: Path
    paths: Paths
    judge: Callable[[Tables], Settings]
    options: Mapping[str, str]
    needs_restart: Callable[[SettingPath], bool]
    redact: Callable[[str], str]
    find_moves: Callable[[Tables, Tables], list[SettingFault]]

    def read(self, current: Settings) -> dict[str, Any]:
        """Return the form; `blocked` says why nothing can be changed, if so."""
        given: dict[str, Any] = {}
        blocked, error, revision, faults = "", "", "", list[Json]()
        try:
            raw = self._read_file().raw
            revision = _revision(raw)
            given = decode_settings(raw or b"", self.file)
            if raw is not None:
                self.judge(given)
        except ConfigError as reason:
            found = faults_of(reason)
            error = str(reason) if found else reason.sentence
            faults = write_faults(found)
            blocked = "" if given or found else error
        state = SettingsState(
            current,
            given,
            environment_values(),
            self.options,
            self.needs_restart,
            self.redact,
        )
        return {
            "file": str(self.file),
            "exists": os.path.lexists(self.file),
            "revision": revision,
            "blocked": blocked,
            "error": error,
            "faults": faults,
            **make_form(state),
        }

    def preview(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return what is wrong with changes, or the lines that they would change.

        `more_lines` is how many there are beyond the first thousand.

        Raises:
            ConfigError: the file as it is cannot be changed.
        """
        before = self._read_file().raw
        outcome = self._apply(before, changes)
        lines = list[Json]()
        if outcome.after is not None:
            lines = changed_lines(before or b"", outcome.after, self.redact)
        return {
            "errors": write_faults(outcome.faults),
            "lines": lines[:_MOST_LINES],
            "more_lines": len(lines[_MOST_LINES:]),
            "restart": self._restart(changes),
        }

    def write(self, revision: str, changes: Sequence[Change]) -> list[SettingFault]:
        """Write changes into the file; return what is wrong with them, if they are.

        Raises:
            BadRequest: 409, the file is not that of the revision any more.
            ConfigError: the file cannot be changed.
        """
        file = self._read_file()
        if _revision(file.raw) != revision:
            raise changed_error()
        outcome = self._apply(file.raw, changes)
        if outcome.after is not None and outcome.after != file.raw:
            write_own_settings(self.paths, file, outcome.after)
        return [*outcome.faults]

    def _apply(self, before: bytes | None, changes: Sequence[Change]) -> Outcome:
        outcome = apply_changes(before, changes, self.file, self.judge)
        if outcome.after is None:
            return outcome
        texts = (before or b"", outcome.after)
        moves = self.find_moves(*(decode_settings(raw, self.file) for raw in texts))
        return Outcome(None, tuple(moves)) if moves else outcome

    def _read_file(self) -> SettingsFile:
        return read_own_settings(self.file, Path.home(), follows_link=False)

    def _restart(self, changes: Sequence[Change]) -> list[str]:
        paths = (change.path for change in changes)
        return [".".join(path) for path in paths if self.needs_restart(path)]


def write_faults(faults: Sequence[SettingFault]) -> list[Json]:
    """Return faults as JSON."""
    return [{"path": list(fault.path), "message": fault.message} for fault in faults]


def changed_error() -> BadRequest:
    """Return the error of a file that somebody else has changed meanwhile."""
    return BadRequest(
        "The settings file was changed meanwhile, by an editor or another page.",
        code="settings_changed",
        hint="Look at what is in it now, and save again.",
        status=409,
    )


def _revision(raw: bytes | None) -> str:
    return "" if raw is None else bytes_digest(raw)
