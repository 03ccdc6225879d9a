"""Set and remove single values in a text; each change is proved by reading the result.

A finder knows a format: where values stand, and where new ones go. Only the values at
the path may differ afterwards, and each other byte is as it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from byok.client_settings.setting import (
    MISSING,
    Leaf,
    SettingPath,
    SettingValue,
    write_path,
)


class Finder(Protocol):
    """What the module of a format can do; all functions raise ValueError."""

    def leaves(self, text: str) -> Iterator[Leaf]:
        """Give all values without members, as they stand there."""

    def read(self, text: str, path: SettingPath) -> Any:
        """Return the value at a path, or MISSING."""

    def read_raw(self, text: str, path: SettingPath) -> str | None:
        """Return a value as it stands in a text, None if it does not."""

    def write_value(self, value: SettingValue) -> str:
        """Write a value as the format has it."""

    def ways_to_put(self, text: str, path: SettingPath, raw: str) -> Iterator[str]:
        """Give the texts with a value that may be meant, the best first."""

    def without_path(self, text: str, path: SettingPath) -> str:
        """Return the text without a value."""


@dataclass(frozen=True, slots=True)
class TextEditor:
    """Changes single values of a text; the functions raise ValueError."""

    finder: Finder

    def read(self, text: str, path: SettingPath) -> Any:
        """Return the value at a path, or MISSING; nobody may change it."""
        return self.finder.read(text, path)

    def put(self, text: str, path: SettingPath, value: SettingValue) -> str:
        """Set a value, and create what contains it."""
        if _is_same(self.read(text, path), value):
            return text
        return self._put(text, path, self.finder.write_value(value), value)

    def restore(self, text: str, path: SettingPath, base: str) -> str:
        """Set the value that another text has at this path, as it stands there."""
        raw = self.finder.read_raw(base, path)
        if raw is None:
            raise ValueError(f"{write_path(path)} is not in the former text")
        return self._put(text, path, raw, self.read(base, path))

    def drop(self, text: str, path: SettingPath) -> str:
        """Remove a value, with its line if nothing else is on it."""
        if self.read(text, path) is MISSING:
            return text
        new = self.finder.without_path(text, path)
        if self._is_proved(text, new, path, MISSING):
            return new
        raise ValueError(f"{write_path(path)} could not be removed")

    def _put(self, text: str, path: SettingPath, raw: str, value: Any) -> str:
        for new in self.finder.ways_to_put(text, path, raw):
            if self._is_proved(text, new, path, value):
                return new
        raise ValueError(f"{write_path(path)} could not be set")

    def _is_proved(self, old: str, new: str, path: SettingPath, value: Any) -> bool:
        """Tell whether a path has a value in the new text, and all others are equal."""
        before = self._others(old, path)
        try:
            after = self._others(new, path)
            return before == after and _is_same(self.read(new, path), value)
        except ValueError:  # the text is not valid any more
            return False

    def _others(self, text: str, path: SettingPath) -> list[Leaf]:
        """Return the leaves that are neither at a path nor an empty table above it."""
        return [
            leaf
            for leaf in self.finder.leaves(text)
            if leaf.path[: len(path)] != path and path[: len(leaf.path)] != leaf.path
        ]


def _is_same(one: Any, other: Any) -> bool:
    """Compare two values: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)
