"""What editors of settings files share: paths, values, leaves of a file."""

from typing import Final, NamedTuple, TypeAlias

SettingPath: TypeAlias = tuple[str, ...]
SettingValue: TypeAlias = str | list[str] | dict[str, str]
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
