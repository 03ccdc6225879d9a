"""Set and remove single values in a text; each change is proved by reading it.

A finder knows a format: where values stand, and where new ones go. Only the values at
the path may differ afterwards, and each other byte is as it was.
"""

import codecs
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from byok.core.late import compile_late

# What editors of settings files share: paths, values, leaves of a file.


SettingPath: TypeAlias = tuple[str, ...]
_Entry: TypeAlias = Mapping[str, str | list[str] | dict[str, int]]
SettingValue: TypeAlias = bool | int | float | str | list[str] | _Entry
MAX_DEPTH = 100


class TextFormat(StrEnum):
    """How a settings file is written."""

    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


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


class TextEditor(Struct, frozen=True):
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


# Bytes of a settings file as text with plain line ends, and back.


class DecodedText(NamedTuple):
    """A text, and what `encode_text` needs to give the same bytes again."""

    text: str
    has_bom: bool = False
    has_crlf: bool = False


def decode_text(raw: bytes) -> DecodedText:
    """Decode UTF-8; where all line ends are CRLF, the text has LF.

    Raises:
        ValueError: it is not UTF-8.
    """
    has_bom = raw.startswith(codecs.BOM_UTF8)
    try:
        text = raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: it is not UTF-8") from None
    lines = text.count("\n")
    has_crlf = 0 < lines == text.count("\r\n") == text.count("\r")
    return DecodedText(
        text.replace("\r\n", "\n") if has_crlf else text, has_bom, has_crlf
    )


def encode_text(decoded: DecodedText) -> bytes:
    """Return the bytes of a text that `decode_text` gave, or of a changed one."""
    text, has_bom, has_crlf = decoded
    text = text.replace("\n", "\r\n") if has_crlf else text
    return (codecs.BOM_UTF8 if has_bom else b"") + text.encode()


# A change of a settings file as lines for people, without secrets.


_CONTEXT = 1  # lines around a change, to find its place; others' keys may be near


def preview_change(
    path: str, before: bytes | None, after: bytes | None, redact: Callable[[str], str]
) -> list[str]:
    """Return the lines of a difference; each goes through `redact`."""
    old, new = (
        decode_text(raw).text.splitlines() if raw else [] for raw in (before, after)
    )
    difference = difflib.unified_diff(
        old,
        new,
        path if before is not None else "(no file)",
        path if after is not None else "(no file)",
        n=_CONTEXT,
        lineterm="",
    )
    return [redact(line) for line in difference]


_SECRET = compile_late(
    r"""((?:token|key|secret|password|authorization)["']?\s*[:=]\s*)\S.*""",
    re.IGNORECASE,
)
_HIDDEN = "\u2022" * 8
_PLACES = re.compile(r"[-+](\d+)")


class ChangedLine(NamedTuple):
    """A line of a change: `mark` is "+", "-" or " "; `line` is where it stands then."""

    mark: str
    line: int
    text: str


def list_changes(
    before: bytes | None, after: bytes | None, redact: Callable[[str], str]
) -> list[ChangedLine]:
    """Return the lines of a difference, for who may not see what is secret in them.

    Each goes through `redact`, and has no value of what is called a token or a key.
    """
    rows, old, new = list[ChangedLine](), 0, 0
    for line in preview_change("", before, after, str)[2:]:
        mark, text = line[0], _SECRET.sub(rf"\g<1>{_HIDDEN}", line[1:])
        if mark == "@":
            old, new = map(int, _PLACES.findall(line)[:2])
            continue
        rows.append(ChangedLine(mark, old if mark == "-" else new, redact(text)))
        old, new = old + (mark != "+"), new + (mark != "-")
    return rows
