"""Set and remove settings in a text, and prove that nothing else changed."""

import hashlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import orjson

from byok.client_settings import jsonc, toml_text, yaml_text
from byok.client_settings.setting import (
    MISSING,
    Leaf,
    MissingValue,
    Setting,
    SettingPath,
    SettingValue,
    write_path,
)


class TextFormat(StrEnum):
    """How a settings file is written."""

    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


class TextEditor(Protocol):
    """What the modules for each format can do; all functions raise ValueError."""

    def leaves(self, text: str) -> Iterator[Leaf]:
        """Give all values without members, as they stand there."""

    def read(self, text: str, path: SettingPath) -> Any | MissingValue:
        """Return the value at a path, or MISSING."""

    def put(self, text: str, path: SettingPath, value: SettingValue) -> str:
        """Set a value, and create what contains it."""

    def restore(self, text: str, path: SettingPath, base: str) -> str:
        """Set the value that another text has at this path."""

    def drop(self, text: str, path: SettingPath) -> str:
        """Remove a value."""


_EMPTY: tuple[Any, ...] = ({}, [], None)


class TakenOut(NamedTuple):
    """A text without byok's settings; `changed` are those that others changed since."""

    text: str
    changed: tuple[SettingPath, ...]


EDITORS: dict[TextFormat, TextEditor] = {
    TextFormat.JSONC: jsonc,
    TextFormat.TOML: toml_text,
    TextFormat.YAML: yaml_text,
}


def put_all(text: str, settings: Iterable[Setting], format: TextFormat) -> str:
    """Return the text with these settings; the same text if it has them already.

    Raises:
        ValueError: the text cannot be read, or not be changed without other changes.
    """
    editor, new = EDITORS[format], text
    settings = tuple(settings)
    # All are read before the first is put: to read each new text takes long.
    lacking = [one for one in settings if editor.read(text, one.path) != one.value]
    for setting in lacking:
        new = editor.put(new, *setting)
    _check(editor, text, new, [setting.path for setting in settings])
    for path, value in settings:
        if editor.read(new, path) != value:
            raise ValueError(f"{write_path(path)} could not be set")
    return new


def take_out(
    text: str,
    base: str,
    written: Iterable[tuple[SettingPath, frozenset[str]]],
    format: TextFormat,
) -> TakenOut:
    """Remove byok's settings from a text that was edited since.

    Each gets the value that it has in `base`, the text before byok's. `written` are the
    digests of the values that byok wrote at a path: others stay.

    Raises:
        ValueError: as in `put_all`.
    """
    editor, new, changed = EDITORS[format], text, list[SettingPath]()
    written = tuple(written)
    for path, digests in reversed(written):
        value = editor.read(new, path)
        if value is MISSING:
            continue
        if value_digest(value) not in digests:
            changed.append(path)
        elif editor.read(base, path) is not MISSING:
            new = editor.restore(new, path, base)
        else:
            new = _drop_with_parents(editor, new, path, base)
    _check(editor, text, new, [path for path, _ in written])
    return TakenOut(new, tuple(reversed(changed)))


def value_digest(value: Any) -> str:
    """Return what stands for a value in byok's own records."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    raw = orjson.dumps(value, default=str, option=option)
    return hashlib.sha256(raw).hexdigest()


def _drop_with_parents(
    editor: TextEditor, text: str, path: SettingPath, base: str
) -> str:
    """Drop a value, and what was made to hold it."""
    text = editor.drop(text, path)
    for depth in range(len(path) - 1, 0, -1):
        parent = path[:depth]
        if editor.read(text, parent) not in _EMPTY:
            break
        former = editor.read(base, parent)
        if former is MISSING:
            text = editor.drop(text, parent)
        elif former in _EMPTY:
            return editor.restore(text, parent, base)
    return text


def _check(
    editor: TextEditor, old: str, new: str, paths: Iterable[SettingPath]
) -> None:
    """Refuse a change of anything but these paths.

    Raises:
        ValueError: another value changed, or the new text cannot be read.
    """
    if _others(editor, old, paths) != _others(editor, new, paths):
        raise ValueError("it could not be changed without changing other settings")


def _others(editor: TextEditor, text: str, paths: Iterable[SettingPath]) -> list[Leaf]:
    """Return the leaves that are neither at a path nor an empty object before one."""
    return [
        leaf
        for leaf in editor.leaves(text)
        if not any(_concerns(leaf, path) for path in paths)
    ]


def _concerns(leaf: Leaf, path: SettingPath) -> bool:
    is_below = leaf.path[: len(path)] == path
    return is_below or (
        len(leaf.path) < len(path) and path[: len(leaf.path)] == leaf.path
    )
