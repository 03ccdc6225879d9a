"""Set and remove single values in a text; each change is verified by parsing it.

A `Finder` is the module of a format: it knows where values are, and where new ones go.
Only the value at the path may differ afterwards; all other bytes stay as they were.
"""

import codecs
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from byok.core.late import compile_late

SettingPath: TypeAlias = tuple[str, ...]
_Entry: TypeAlias = Mapping[str, str | list[str] | dict[str, int]]
SettingValue: TypeAlias = bool | int | float | str | list[str] | _Entry
MAX_DEPTH = 100
_CONTEXT_LINES = 1  # around a change, to find its place; keys of others may be near
_SECRET = compile_late(
    r"""((?:token|key|secret|password|authorization)["']?\s*[:=]\s*)\S.*""",
    re.IGNORECASE,
)
_HIDDEN = "\u2022" * 8
_LINE_NUMBERS = re.compile(r"[-+](\d+)")


class TextFormat(StrEnum):
    """How a settings file is written."""

    JSONC = "jsonc"
    TOML = "toml"
    YAML = "yaml"


class Setting(NamedTuple):
    """A value to set at a path.

    The element `name=x` of a path selects the mapping with that name from a list.
    """

    path: SettingPath
    value: SettingValue


class Leaf(NamedTuple):
    """A value without members, as written in the file; list items are named `[]`."""

    path: SettingPath
    text: str


class MissingValue:
    """The type of MISSING; None would not do, as a file may contain null."""


MISSING: Final = MissingValue()


def write_path(path: SettingPath) -> str:
    """Write a path for messages."""
    return " > ".join(path)


def find_value(values: Any, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path of nested mappings, or MISSING."""
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return MISSING
        values = values[name]
    return values


def value_leaves(value: Any, path: SettingPath) -> Iterator[Leaf]:
    """Yield the leaves of a value of lists and mappings.

    Raises:
        ValueError: it is nested too deeply.
    """
    if len(path) > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    children: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        children = [(str(name), child) for name, child in value.items()]
    elif isinstance(value, list):
        children = [(_element(child), child) for child in value]
    for name, child in children:
        yield from value_leaves(child, (*path, name))
    if not children:
        yield Leaf(path, "" if isinstance(value, dict | list) else repr(value))


def _element(child: Any) -> str:
    name = child.get("name") if isinstance(child, dict) else None
    return f"name={name}" if isinstance(name, str) else "[]"


class Finder(Protocol):
    """The functions of a format's module; all raise ValueError for invalid texts."""

    def leaves(self, text: str) -> Iterable[Leaf]:
        """Return all values without members, as they are written."""

    def read(self, text: str, path: SettingPath) -> Any:
        """Return the value at a path, or MISSING."""

    def read_raw(self, text: str, path: SettingPath) -> str | None:
        """Return a value as it is written in a text; None if there is none."""

    def write_value(self, value: SettingValue) -> str:
        """Write a value in the format."""

    def ways_to_put(self, text: str, path: SettingPath, raw: str) -> Iterator[str]:
        """Yield candidate texts with the value set, the best first."""

    def without_path(self, text: str, path: SettingPath) -> str:
        """Return the text without a value."""


class TextEditor(Struct, frozen=True):
    """Changes single values of a text; the methods raise ValueError."""

    finder: Finder

    def read(self, text: str, path: SettingPath) -> Any:
        """Return the value at a path, or MISSING; callers must not change it."""
        return self.finder.read(text, path)

    def put(self, text: str, path: SettingPath, value: SettingValue) -> str:
        """Set a value, creating its parents if needed."""
        if _is_same(self.read(text, path), value):
            return text
        return self._put(text, path, self.finder.write_value(value), value)

    def restore(self, text: str, path: SettingPath, base: str) -> str:
        """Set the value that `base` has at this path, as it is written there."""
        raw = self.finder.read_raw(base, path)
        if raw is None:
            raise ValueError(f"{write_path(path)} is not in the former text")
        return self._put(text, path, raw, self.read(base, path))

    def drop(self, text: str, path: SettingPath) -> str:
        """Remove a value, with its line if nothing else is on it."""
        if self.read(text, path) is MISSING:
            return text
        new = self.finder.without_path(text, path)
        if self._is_correct(text, new, path, MISSING):
            return new
        raise ValueError(f"{write_path(path)} could not be removed")

    def _put(self, text: str, path: SettingPath, raw: str, value: Any) -> str:
        for new in self.finder.ways_to_put(text, path, raw):
            if self._is_correct(text, new, path, value):
                return new
        raise ValueError(f"{write_path(path)} could not be set")

    def _is_correct(self, old: str, new: str, path: SettingPath, value: Any) -> bool:
        """Tell whether the new text has the value at the path, and no other change."""
        before = self._others(old, path)
        try:
            after = self._others(new, path)
            return before == after and _is_same(self.read(new, path), value)
        except ValueError:  # the new text is invalid
            return False

    def _others(self, text: str, path: SettingPath) -> list[Leaf]:
        """Return the leaves that are neither at a path nor an empty table above it."""
        return [
            leaf
            for leaf in self.finder.leaves(text)
            if leaf.path[: len(path)] != path and path[: len(leaf.path)] != leaf.path
        ]


def _is_same(value: Any, other: Any) -> bool:
    """Compare two values, of which true and 1 are different."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


class DecodedText(NamedTuple):
    """A text, and the facts by which `encode_text` restores its original bytes."""

    text: str
    has_bom: bool = False
    has_crlf: bool = False


def decode_text(raw: bytes) -> DecodedText:
    """Decode UTF-8; if all line ends are CRLF, convert them to LF.

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
    """Encode a text of `decode_text`, which may have been edited."""
    text, has_bom, has_crlf = decoded
    text = text.replace("\n", "\r\n") if has_crlf else text
    return (codecs.BOM_UTF8 if has_bom else b"") + text.encode()


def preview_change(
    path: str, before: bytes | None, after: bytes | None, redact: Callable[[str], str]
) -> list[str]:
    """Return the lines of a unified diff, each passed through `redact`."""
    old, new = (
        decode_text(raw).text.splitlines() if raw else [] for raw in (before, after)
    )
    difference = difflib.unified_diff(
        old,
        new,
        path if before is not None else "(no file)",
        path if after is not None else "(no file)",
        n=_CONTEXT_LINES,
        lineterm="",
    )
    return [redact(line) for line in difference]


class ChangedLine(NamedTuple):
    """A line of a diff: `mark` is "+", "-" or " "; `line` is its number in its file."""

    mark: str
    line: int
    text: str


def list_changes(
    before: bytes | None, after: bytes | None, redact: Callable[[str], str]
) -> list[ChangedLine]:
    """Return the lines of a diff without secrets, for the page.

    Each is passed through `redact`, and values named like a token or key are hidden.
    """
    rows, old, new = list[ChangedLine](), 0, 0
    for line in preview_change("", before, after, str)[2:]:
        mark, text = line[0], _SECRET.sub(rf"\g<1>{_HIDDEN}", line[1:])
        if mark == "@":
            old, new = map(int, _LINE_NUMBERS.findall(line)[:2])
            continue
        rows.append(ChangedLine(mark, old if mark == "-" else new, redact(text)))
        old, new = old + (mark != "+"), new + (mark != "-")
    return rows
