"""Change single values of TOML, and nothing else in the text.

`toml_edits.py` gives texts that may be meant. Each is read again by another library,
and has to say what it should.
"""

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from byok.client_settings.setting import (
    MAX_DEPTH,
    MISSING,
    Leaf,
    MissingValue,
    SettingPath,
    SettingValue,
    find_value,
    value_leaves,
    write_path,
)
from byok.client_settings.toml_edits import (
    former_item,
    new_item,
    ways_to_put,
    without_path,
)

TomlValue: TypeAlias = bool | int | float | SettingValue


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members, sorted: tables may stand in any order.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    if value := _load(text):
        yield from sorted(value_leaves(value, ()), key=lambda leaf: leaf.path)


def read(text: str, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path, or MISSING; nobody may change it."""
    return find_value(_load(text), path)


def put(text: str, path: SettingPath, value: TomlValue) -> str:
    """Set a value; missing tables on the way to it are created.

    Raises:
        ValueError: something on the way is no table.
    """
    if same_value(read(text, path), value):
        return text
    return _put(text, path, value, new_item(value))


def restore(text: str, path: SettingPath, base: str) -> str:
    """Set the value that another text has at this path, as it stands there."""
    value = read(base, path)
    if value is MISSING:
        raise ValueError(f"{write_path(path)} is not in the former text")
    return _put(text, path, value, former_item(base, path))


def drop(text: str, path: SettingPath) -> str:
    """Remove a value or a table; comments on lines of their own stay.

    Raises:
        ValueError: the value is part of a larger one.
    """
    if read(text, path) is MISSING:
        return text
    new = without_path(text, path)
    rest = _load_new(new)
    due = _prune(_load(text), path)
    if find_value(rest, path) is MISSING and same_value(_prune(rest, path), due):
        return new
    raise ValueError(f"{write_path(path)} could not be removed")


def same_value(one: Any, other: Any) -> bool:
    """Compare values as TOML does: true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            same_value(one[name], other[name]) for name in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other or (one != one and other != other))


@lru_cache(maxsize=4)  # the same text is read several times; nobody changes a value
def _load(text: str) -> dict[str, Any]:
    try:
        given = tomllib.loads(text)
        _check_depth(given, MAX_DEPTH)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return given


def _check_depth(value: Any, rest: int) -> None:
    if not rest:
        raise RecursionError
    if isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            _check_depth(child, rest - 1)


def _put(text: str, path: SettingPath, value: Any, item: Any) -> str:
    """Set a value; `item` is what tomlkit writes for it."""
    due = _with(_load(text), path, value)
    for new in ways_to_put(text, path, item):
        if same_value(_load_new(new), due):
            return new
    raise ValueError(f"{write_path(path)} could not be set")


def _with(given: Any, path: SettingPath, value: Any, above: SettingPath = ()) -> Any:
    """Return a copy of tables, with a value at a path."""
    if not isinstance(given, dict):
        raise ValueError(f"{write_path(above)} is no table")
    name, below = path[0], path[1:]
    if below:
        value = _with(given.get(name, {}), below, value, (*above, name))
    return given | {name: value}


def _prune(given: Any, path: SettingPath) -> Any:
    """Return a copy of tables without a path, and without empty ones on it."""
    if not isinstance(given, dict) or path[0] not in given:
        return given
    below = _prune(given[path[0]], path[1:]) if path[1:] else {}
    rest = {name: value for name, value in given.items() if name != path[0]}
    return rest if below == {} else rest | {path[0]: below}


def _load_new(text: str) -> dict[str, Any] | MissingValue:
    """Return what a text of byok's says, MISSING if it is no valid TOML."""
    try:
        return _load(text)
    except ValueError:
        return MISSING
