"""Changes that the page requests: read, applied to the file's text, and validated."""

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from byok.chat import Json
from byok.client_settings import toml_text
from byok.client_settings.editor import TextEditor
from byok.client_settings.encoding import decode_text, encode_text
from byok.client_settings.setting import (
    MISSING,
    MissingValue,
    SettingPath,
    SettingValue,
)
from byok.config import values
from byok.config.faults import SettingFault, faults_of
from byok.config.loading import decode_settings
from byok.dashboard.editable import UPSTREAMS, Editable, FieldKind, find_editable
from byok.errors import BadRequest, ConfigError
from byok.routing import OFFICIAL

Tables: TypeAlias = Mapping[str, Any]  # of values, by name
HEAD = "# Made by byok's dashboard. Every setting: byok config example\n"
_TOML = TextEditor(toml_text)
_MOST = 200  # changes at a time
_LONGEST = 2000  # characters of a line
_LONGEST_TEXT = 20_000
_MOST_LINES = 200


class Change(NamedTuple):
    """One change: a new value, or MISSING to take it out of the file."""

    path: SettingPath
    value: SettingValue | MissingValue


class Outcome(NamedTuple):
    """The new text, or what is wrong with it; `after` is None if there is none."""

    after: bytes | None
    faults: tuple[SettingFault, ...] = ()


def read_changes(body: Json) -> tuple[list[Change], list[SettingFault]]:
    """Read the changes of a request; a value that its setting cannot have is a fault.

    Raises:
        BadRequest: a change is malformed, or of what the page may not change.
    """
    rows = body.get("changes")
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise _bad("changes must be a list of at most 200")
    changes, faults = list[Change](), list[SettingFault]()
    for row in rows:
        path = _read_path(row)
        try:
            changes.append(Change(path, _read_value(path, row)))
        except ValueError as error:
            faults.append(SettingFault(path, str(error)))
    return changes, faults


def _read_path(row: Any) -> SettingPath:
    parts = row.get("path") if isinstance(row, dict) else None
    if (
        not isinstance(parts, list)
        or not 2 <= len(parts) <= 4
        or not all(isinstance(part, str) and len(part) <= 64 for part in parts)
    ):
        raise _bad("a path is a list of names")
    path = tuple(parts)
    if find_editable(path) is None and not _is_upstream(path):
        raise _bad(f"{'.'.join(path)} is not changed on this page, only in the file")
    return path


def _is_upstream(path: SettingPath) -> bool:
    return path[0] == UPSTREAMS and len(path) == 2


def _read_value(path: SettingPath, row: dict[str, Any]) -> SettingValue | MissingValue:
    """Return the value of a change.

    Raises:
        ValueError: the setting cannot have it.
    """
    if row.get("remove") is True:
        return MISSING
    if path[0] == UPSTREAMS:
        _check_name(path[1])
    if (editable := find_editable(path)) is None:
        if row.get("value") != {}:
            raise _bad("an upstream is added as an empty table")
        return {}
    return _convert(editable, row.get("value"))


def _check_name(name: str) -> None:
    if not values.UPSTREAM_NAME.match(name):
        raise ValueError("must be a-z, 0-9, _ and -, 32 characters at most")
    if name == OFFICIAL:
        raise ValueError("this name is reserved for the official service")


def _convert(editable: Editable, value: Any) -> SettingValue:
    match editable.kind:
        case FieldKind.SWITCH:
            if not isinstance(value, bool):
                raise ValueError("must be on or off")
            return value
        case FieldKind.INTEGER | FieldKind.NUMBER:
            return _number(value, whole=editable.kind is FieldKind.INTEGER)
        case FieldKind.LIST | FieldKind.MODELS:
            if not isinstance(value, list) or len(value) > _MOST_LINES:
                raise ValueError(f"must be a list of at most {_MOST_LINES}")
            return [_text(part) for part in value]
        case FieldKind.LONG:
            return _text(value, longest=_LONGEST_TEXT, lines=True)
        case _:
            return _text(value)


def _number(value: Any, *, whole: bool) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    if not math.isfinite(value) or abs(value) >= 2**53:
        raise ValueError("must be a smaller number")
    if value == int(value):
        return int(value)
    if whole:
        raise ValueError("must be a whole number")
    return value


def _text(value: Any, *, longest: int = _LONGEST, lines: bool = False) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    text: str = value.replace("\r\n", "\n")
    if len(text) > longest:
        raise ValueError(f"must have at most {longest:,} characters")
    allowed = "\n\t" if lines else ""
    if any(unicodedata.category(c) == "Cc" and c not in allowed for c in text):
        raise ValueError("must not contain control characters")
    return text


def apply_changes(
    before: bytes | None,
    changes: Sequence[Change],
    file: Path,
    judge: Callable[[Tables], object],
) -> Outcome:
    """Apply changes to the file's content, and validate it; nothing is written."""
    try:
        decode_settings(before or b"", file)
        decoded = decode_text(before or b"")
    except ConfigError as error:
        return Outcome(None, (SettingFault((), error.sentence),))
    text = decoded.text if before else HEAD
    for change in changes:
        try:
            text = _write(text, change)
        except ValueError as error:
            reason = f"The settings file cannot be changed here: {error}."
            return Outcome(None, (SettingFault(change.path, reason),))
    after = encode_text(decoded._replace(text=text))
    try:
        judge(decode_settings(after, file))
    except ConfigError as error:
        rest = faults_of(error) or (SettingFault((), error.sentence),)
        return Outcome(None, tuple(_assign(fault, changes) for fault in rest))
    return Outcome(after)


def _write(text: str, change: Change) -> str:
    if isinstance(change.value, MissingValue):
        return _TOML.drop(text, change.path)
    return _TOML.put(text, change.path, change.value)


def _assign(fault: SettingFault, changes: Sequence[Change]) -> SettingFault:
    """Return a fault at the change that it comes from, else where the page shows it."""
    places = (*fault.causes, fault.path)
    for place in places:
        exact = [c.path for c in changes if place[: len(c.path)] == c.path]
        if place and exact:
            return SettingFault(max(exact, key=len), fault.message)
    shown = (place for place in places if find_editable(place) is not None)
    return SettingFault(next(shown, ()), fault.message)


def _bad(reason: str) -> BadRequest:
    return BadRequest(f"Bad field: {reason}.", code="bad_field", status=422)
