"""The settings file as the page sees it: a form, previews of changes, a new text."""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byok.chat import Json
from byok.client_settings.backups import bytes_digest
from byok.client_settings.encoding import decode_text
from byok.client_settings.setting import SettingPath
from byok.client_settings.settings_file import SettingsFile
from byok.config import Settings
from byok.config.faults import SettingFault, faults_of
from byok.config.loading import decode_settings
from byok.config.own_file import read_own_settings, write_own_settings
from byok.config.sources import environment_values
from byok.dashboard.editable import UPSTREAM_KEYS
from byok.dashboard.settings_change import Change, Outcome, Tables, apply_changes
from byok.dashboard.settings_form import FOR_THE_FILE, SettingsState, make_form
from byok.errors import BadRequest, ConfigError
from byok.platform.paths import Paths

_SHOWN = re.compile(rf"\s*(?:{'|'.join(UPSTREAM_KEYS)})\s*=|\s*\[[^\[\]]*\]\s*\Z")
_HIDDEN = re.compile(rf"\b(?:{'|'.join(FOR_THE_FILE)})[\"']?\s*(?:\.\s*[\w\"'-]+\s*)?=")
_MOST_LINES = 200


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
            "exists": bool(revision),
            "revision": revision,
            "blocked": blocked,
            "error": error,
            "faults": faults,
            **make_form(state),
        }

    def preview(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return what is wrong with changes, or the lines that they would change.

        Raises:
            ConfigError: the file as it is cannot be changed.
        """
        before = self._read_file().raw
        outcome = self._apply(before, changes)
        return {
            "errors": write_faults(outcome.faults),
            "lines": [*_difference(before, outcome, self.redact)],
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


def _difference(
    before: bytes | None, outcome: Outcome, redact: Callable[[str], str]
) -> Iterator[Json]:
    """Give the lines that change: {"sign": "+" or "-", "line"}, without neighbours.

    What goes away may be what the page never shows, such as headers of an upstream, and
    a line may have them beside what changes.
    """
    if outcome.after is None:
        return
    old, new = (_lines(raw) for raw in (before or b"", outcome.after))
    rows = difflib.unified_diff(old, new, n=0, lineterm="")
    for row in [*rows][2 : _MOST_LINES + 2]:
        if row.startswith("@@"):
            continue
        line = row[1:]
        if (row[0] == "-" and not _SHOWN.match(line)) or _HIDDEN.search(line):
            line = "…" if line.strip() else ""
        yield {"sign": row[0], "line": redact(line)}


def _lines(raw: bytes) -> list[str]:
    # Unlike splitlines: a value may have other ends of lines in it.
    return decode_text(raw).text.removesuffix("\n").split("\n")
