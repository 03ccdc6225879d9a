"""Set all settings of a client in a text, and remove them again."""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from byok.clients import jsonc, toml_text, yaml_text
from byok.clients.settings_text import (
    MISSING,
    Setting,
    SettingPath,
    TextEditor,
    TextFormat,
)

_EMPTY: tuple[Any, ...] = ({}, [], None)
TEXT_EDITORS = {
    TextFormat.JSONC: TextEditor(jsonc),
    TextFormat.TOML: TextEditor(toml_text),
    TextFormat.YAML: TextEditor(yaml_text),
}


class TakenOut(NamedTuple):
    """A text without byok's settings, but for those `changed` by others since."""

    text: str
    changed: tuple[SettingPath, ...]


def put_all(text: str, settings: Iterable[Setting], format: TextFormat) -> str:
    """Return the text with these settings; the same text if it has them already.

    Raises:
        ValueError: the text cannot be read, or the edit would change other settings.
    """
    for path, value in settings:
        text = TEXT_EDITORS[format].put(text, path, value)
    return text


def take_out(
    text: str,
    base: str,
    written: Iterable[tuple[SettingPath, frozenset[str]]],
    format: TextFormat,
) -> TakenOut:
    """Remove byok's settings from a text that was edited since.

    Each gets the value that it has in `base`, the text before byok changed it.
    `written` are the digests of the values that byok wrote at a path; a path with
    another value stays.

    Raises:
        ValueError: as in `put_all`.
    """
    editor, new, changed = TEXT_EDITORS[format], text, list[SettingPath]()
    for path, digests in reversed(tuple(written)):
        value = editor.read(new, path)
        if value is MISSING:
            continue
        if value_digest(value) not in digests:
            changed.append(path)
        elif editor.read(base, path) is not MISSING:
            new = editor.restore(new, path, base)
        else:
            new = _drop_with_parents(editor, new, path, base)
    return TakenOut(new, tuple(reversed(changed)))


def value_digest(value: Any) -> str:
    """Return the digest by which byok's records identify a value."""
    option = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    raw = orjson.dumps(value, default=str, option=option)
    return hashlib.sha256(raw).hexdigest()


def _drop_with_parents(
    editor: TextEditor, text: str, path: SettingPath, base: str
) -> str:
    """Drop a value, and the parents that were created to hold it."""
    text = editor.drop(text, path)
    for depth in range(len(path) - 1, 0, -1):
        parent = path[:depth]
        if editor.read(text, parent) not in _EMPTY:
            break
        original = editor.read(base, parent)
        if original is MISSING:
            text = editor.drop(text, parent)
        elif original in _EMPTY:
            return editor.restore(text, parent, base)
    return text
