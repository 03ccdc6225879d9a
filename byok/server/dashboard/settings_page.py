"""The settings on the page: a form, previews of changes, saving, and a restart."""

import asyncio
import contextlib
import difflib
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from byok.clients.settings_file import SettingsFile, bytes_digest
from byok.clients.settings_text import MISSING, SettingPath, decode_text, find_value
from byok.clients.toml_text import KEY, NOTE, Statement, split_statements
from byok.core.chat import Json
from byok.core.errors import BadRequest, ConfigError
from byok.core.platform.paths import Paths
from byok.core.routing import Purpose
from byok.dialects.presets import PRESETS
from byok.server.control import Control, needs_restart
from byok.server.dashboard.editable import (
    NAME,
    UPSTREAMS,
    Change,
    Editable,
    Outcome,
    Tables,
    apply_changes,
    describe_file_settings,
    editable_settings,
    find_editable,
    plain_value,
    read_changes,
    upstream_settings,
)
from byok.server.dashboard.endpoint import PageHandler, PageRequest, read_text
from byok.settings import Settings, UpstreamSettings
from byok.settings.loading import decode_settings, environment_values, variable_of
from byok.settings.own_file import read_own_settings, write_own_settings
from byok.settings.section import SettingFault, faults_of
from byok.settings.sections import ModelSettings
from byok.wiring.key_sources import find_moved_secrets, key_lookup
from byok.wiring.services import Services

_MAX_LINES = 1000
# The settings that choose the models of jobs other than chats.
_JOBS = {
    purpose: ModelSettings.settings_for(purpose)
    for purpose in Purpose
    if purpose is not Purpose.CHAT
}
_MAX_VALUE_CHARS = 20_000  # characters of a value that is shown
_HIDDEN = "…"
_MAX_REVISION = 100


class SettingsState(NamedTuple):
    """The data of a form.

    `given` are the tables of the file, `environment` those of the environment
    variables; `options` are those of the command line, by the settings that they
    outrank.
    """

    current: Settings
    given: Mapping[str, Any]
    environment: Mapping[str, Any]
    options: Mapping[str, str]
    redact: Callable[[str], str]


def make_form(state: SettingsState) -> dict[str, Any]:
    """Return the groups of fields, the upstreams, and the file-only settings."""
    given = state.given.get(UPSTREAMS)
    in_file = given if isinstance(given, dict) else {}
    names = [*dict.fromkeys((*in_file, *state.current.upstreams))]
    return {
        "groups": [
            {"name": name, "fields": [_field(state, (), row) for row in rows]}
            for name, rows in editable_settings().items()
        ],
        "upstreams": [_upstream(state, name) for name in names],
        "presets": [
            {
                "name": name,
                "title": preset.title or name.replace("_", " ").title(),
                "address": preset.base_url,
                "local": preset.local,
                "variable": preset.key_env,
            }
            for name, preset in PRESETS.items()
        ],
        "file_only": describe_file_settings(
            state.given, names[0] if len(names) == 1 else NAME
        ),
    }


def _upstream(state: SettingsState, name: str) -> dict[str, Any]:
    path = (UPSTREAMS, name)
    return {
        "name": name,
        "in_file": find_value(state.given, path) is not MISSING,
        "key_names": [*state.current.upstreams[name].key_names]
        if name in state.current.upstreams
        else [],
        "fields": [_field(state, path, row) for row in upstream_settings()],
    }


def _describe(row: Editable) -> dict[str, Any]:
    """Return the description of a setting, without its value."""
    return {
        "path": list(row.path),
        "kind": row.kind.value,
        "description": row.field.description or "",
        "default": row.default,
        "choices": list(row.choices),
        **row.limits,
    }


def _field(state: SettingsState, above: SettingPath, row: Editable) -> dict[str, Any]:
    path = (*above, *row.path)
    field = {
        **_describe(row),
        "path": list(path),
        "value": _value(state, path, row),
        "restart": needs_restart(path),
    }
    if (value_in_file := find_value(state.given, path)) is not MISSING:
        field |= _show_value(value_in_file, state.redact)
    if source := _other_source(state, path):
        field["fixed"] = source
    return field


def _value(state: SettingsState, path: SettingPath, row: Editable) -> Any:
    if path[0] == UPSTREAMS:
        upstream = state.current.upstreams.get(path[1])
        value = getattr(upstream, path[2]) if upstream else row.default
    else:
        value = state.current
        for name in path:
            value = getattr(value, name)
    return plain_value(value)


def _other_source(state: SettingsState, path: SettingPath) -> str:
    """Return the option or variable that takes precedence over the file."""
    if option := state.options.get(".".join(path)):
        return option
    if find_value(state.environment, path) is MISSING:
        return ""
    return variable_of(path) or "BYOK_*"


def _show_value(value: Any, redact: Callable[[str], str]) -> dict[str, Any]:
    """Return a value of the file; one that holds a secret is locked instead.

    The value may have any type, because the file may have been edited by hand.
    """
    if isinstance(value, bool | int) and abs(value) < 2**53:
        return {"given": value}
    if isinstance(value, float) and value - value == 0:  # neither infinite nor NaN
        return {"given": value}
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        is_locked = hides_secret(value, redact)
        return {"given": [], "locked": True} if is_locked else {"given": list(value)}
    if isinstance(value, str) and len(value) <= _MAX_VALUE_CHARS:
        is_locked = hides_secret(value, redact)
        return {"given": "", "locked": True} if is_locked else {"given": value}
    return {"given": str(type(value).__name__), "odd": True}


def hides_secret(value: Any, redact: Callable[[str], str]) -> bool:
    """Tell whether a text, or a text of a list, holds a secret, such as a password."""
    if isinstance(value, list):
        return any(hides_secret(part, redact) for part in value)
    text = value if isinstance(value, str) else ""
    scheme, sign, rest = text.partition("://")
    has_user = bool(sign) and " " not in scheme and "@" in rest.partition("/")[0]
    return has_user or redact(text) != text


class _Line(NamedTuple):
    text: str
    statement: Statement


def changed_lines(
    before: bytes, after: bytes, redact: Callable[[str], str]
) -> list[Json]:
    """Return the changed lines of a settings file, as {"sign": "+" or "-", "line"}.

    Both texts are valid TOML. Lines of settings that the page may not change, or that
    hold a secret, are hidden. So are comments, in which an old key may stand.
    """
    old, new = [*_lines(before)], [*_lines(after)]
    texts = [[line.text for line in lines] for lines in (old, new)]
    blocks = difflib.SequenceMatcher(a=texts[0], b=texts[1]).get_opcodes()
    rows = list[Json]()
    for tag, old_begin, old_end, new_begin, new_end in blocks:
        if tag == "equal":
            continue
        signed = [("-", line) for line in old[old_begin:old_end]]
        signed += [("+", line) for line in new[new_begin:new_end]]
        for sign, line in signed:
            text = _show_line(line, redact, notes=not before)
            rows.append({"sign": sign, "line": text})
    return rows


def _lines(raw: bytes) -> Iterator[_Line]:
    # Not with splitlines: a value may contain other line separators.
    for statement in split_statements(decode_text(raw).text):
        for text in statement.text.removesuffix("\n").split("\n"):
            yield _Line(text, statement)


def _show_line(line: _Line, redact: Callable[[str], str], *, notes: bool) -> str:
    statement = line.statement
    if statement.kind == KEY:
        is_shown = _is_editable(statement, redact)
    else:
        is_shown = notes or statement.kind != NOTE
    return redact(line.text) if is_shown or not line.text.strip() else _HIDDEN


def _is_editable(statement: Statement, redact: Callable[[str], str]) -> bool:
    table = statement.table
    return table is not None and all(
        find_editable(path) is not None and not hides_secret(value, redact)
        for path, value in _leaves(tomllib.loads(statement.text), table)
    )


def _leaves(value_: Any, path: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    if isinstance(value_, dict) and value_:
        for name, value in value_.items():
            yield from _leaves(value, (*path, name))
    else:
        yield path, value_


class SettingsPage(NamedTuple):
    """The settings file of a daemon; `validate` makes settings of its tables.

    `find_moves` compares tables before and after a change, and returns a fault for each
    secret that would be sent to another address.
    """

    file: Path
    paths: Paths
    validate: Callable[[Tables], Settings]
    options: Mapping[str, str]
    redact: Callable[[str], str]
    find_moves: Callable[[Tables, Tables], list[SettingFault]]

    def read(self, current: Settings) -> dict[str, Any]:
        """Return the form; `blocked` is why no setting can be changed, or ""."""
        given: dict[str, Any] = {}
        blocked, error, revision, faults = "", "", "", list[Json]()
        try:
            raw = self._read_file().raw
            revision = _revision(raw)
            given = decode_settings(raw or b"", self.file)
            if raw is not None:
                self.validate(given)
        except ConfigError as reason:
            faults_found = faults_of(reason)
            error = str(reason) if faults_found else reason.sentence
            faults = write_faults(faults_found)
            blocked = "" if given or faults_found else error
        state = SettingsState(
            current,
            given,
            environment_values(),
            self.options,
            self.redact,
        )
        return {
            "file": str(self.file),
            "exists": os.path.lexists(self.file),
            "revision": revision,
            "blocked": blocked,
            "error": error,
            "faults": faults,
            "jobs": _JOBS,
            **make_form(state),
        }

    def preview(self, changes: Sequence[Change]) -> dict[str, Any]:
        """Return the faults of changes, or the lines that they would change.

        `more_lines` counts the lines beyond the first thousand.

        Raises:
            ConfigError: the file in its present state cannot be changed.
        """
        before = self._read_file().raw
        outcome = self._apply(before, changes)
        lines = list[Json]()
        if outcome.after is not None:
            lines = changed_lines(before or b"", outcome.after, self.redact)
        return {
            "errors": write_faults(outcome.faults),
            "lines": lines[:_MAX_LINES],
            "more_lines": len(lines[_MAX_LINES:]),
            "restart": [".".join(c.path) for c in changes if needs_restart(c.path)],
        }

    def write(self, revision: str, changes: Sequence[Change]) -> list[SettingFault]:
        """Write changes into the file, or return their faults.

        Raises:
            BadRequest: 409, the file no longer has this revision.
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
        outcome = apply_changes(before, changes, self.file, self.validate)
        if outcome.after is None:
            return outcome
        texts = (before or b"", outcome.after)
        moves = self.find_moves(*(decode_settings(raw, self.file) for raw in texts))
        return Outcome(None, tuple(moves)) if moves else outcome

    def _read_file(self) -> SettingsFile:
        return read_own_settings(self.file, Path.home(), follows_link=False)


def write_faults(faults: Sequence[SettingFault]) -> list[Json]:
    """Return faults as JSON."""
    return [{"path": list(fault.path), "message": fault.message} for fault in faults]


def changed_error() -> BadRequest:
    """Return the error of a file that was changed since the page has read it."""
    return BadRequest(
        "The settings file was changed meanwhile, by an editor or another page.",
        code="settings_changed",
        hint="Look at what is in it now, and save again.",
        status=409,
    )


def _revision(raw: bytes | None) -> str:
    return "" if raw is None else bytes_digest(raw)


class SettingsApi:
    """Answers the settings panel."""

    def __init__(self, services: Services, control: Control) -> None:
        self._services = services
        self._control = control
        self.handlers: Mapping[str, PageHandler] = {
            "settings": self.read,
            "settings-check": self.check,
            "settings-save": self.save,
            "restart": self.restart,
        }

    async def read(self, request: PageRequest) -> Json:
        """Return the form, and which changed settings need a restart."""
        return await self._read()

    async def check(self, request: PageRequest) -> Json:
        """Return the faults of changes, and the lines that they would change."""
        changes, faults = read_changes(request.body)
        preview = await asyncio.to_thread(self._page().preview, changes)
        preview["errors"] = [*write_faults(faults), *preview["errors"]]
        return preview if not faults else {**preview, "lines": [], "more_lines": 0}

    async def save(self, request: PageRequest) -> Json:
        """Write changes, use them at once, and return the new form."""
        changes, faults = read_changes(request.body)
        if not faults:
            revision = read_text(request.body, "revision", max_chars=_MAX_REVISION)
            faults = await self._write(revision, changes)
        if faults:
            return {"errors": write_faults(faults)}
        return {"errors": [], "form": await self._read()}

    async def restart(self, request: PageRequest) -> Json:
        """Restart byok, as `byok restart` does."""
        await self._control.stop(self._control.instance, again=True)
        return {"port": self._control.settings.server.port}

    async def _write(self, revision: str, changes: Any) -> list[SettingFault]:
        faults: list[SettingFault] = []
        page = self._page()

        def write() -> bool:
            faults.extend(page.write(revision, changes))
            return not faults

        await self._control.save(write)
        return faults

    async def _read(self) -> dict[str, Any]:
        form = await asyncio.to_thread(self._page().read, self._control.settings)
        status = self._control.status()
        for preset in form["presets"]:
            # The source that already has the key of its upstream, or "".
            lookup = key_lookup(name := preset["name"], UpstreamSettings(type=name))
            preset["key_from"] = self._services.ladder.outside_source(lookup)
        return {
            **form,
            "error": form["error"] or status["error"],
            "restart": status["restart"],
            **self._control.describe_restart(),
        }

    def _page(self) -> SettingsPage:
        source = self._control.source
        return SettingsPage(
            source.file,
            self._services.paths,
            source.validate,
            source.options,
            self._services.redactor.remove_known,
            self._find_moves,
        )

    def _find_moves(self, before: Tables, after: Tables) -> list[SettingFault]:
        """Return a fault for each new address to which a secret would be sent."""
        validate = self._control.source.validate
        former = [self._control.settings]
        with contextlib.suppress(ConfigError):  # then only those in force count
            former.append(validate(before))
        return find_moved_secrets(tuple(former), validate(after), self._services.ladder)
