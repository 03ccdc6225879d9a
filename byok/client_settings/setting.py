"""What editors of settings files share: paths, values, leaves of a file."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

SettingPath: TypeAlias = tuple[str, ...]
SettingValue: TypeAlias = bool | int | float | str | list[str] | dict[str, str]
MAX_DEPTH = 100


class Setting(NamedTuple):
    """A value that byok wants at a path.

    The element `name=x` of a path selects the mapping with that name from a list.
    """

    path: SettingPath
    value: SettingValue


class Leaf(NamedTuple):
    """A value without members, as it stands in the file; lists have elements `[]`."""

    path: SettingPath
    text: str


class MissingValue:
    """The type of MISSING: a file may well contain null."""


MISSING: Final = MissingValue()


def write_path(path: SettingPath) -> str:
    """Write a path for people."""
    return " > ".join(path)


def find_value(given: Any, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path of nested mappings, or MISSING."""
    for name in path:
        if not isinstance(given, dict) or name not in given:
            return MISSING
        given = given[name]
    return given


def value_leaves(value: Any, path: SettingPath) -> Iterator[Leaf]:
    """Give the leaves of a value of lists and mappings.

    Raises:
        ValueError: it is nested too deeply.
    """
    if len(path) > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    below: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        below = [(str(name), child) for name, child in value.items()]
    elif isinstance(value, list):
        below = [(_element(child), child) for child in value]
    for name, child in below:
        yield from value_leaves(child, (*path, name))
    if not below:
        yield Leaf(path, "" if isinstance(value, dict | list) else repr(value))


def _element(child: Any) -> str:
    name = child.get("name") if isinstance(child, dict) else None
    return f"name={name}" if isinstance(name, str) else "[]"
