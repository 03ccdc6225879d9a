"""Change single values of TOML; tomlkit keeps comments, order and blanks."""

import contextlib
import itertools
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, InlineTable

from byok.client_settings.setting import (
    MISSING,
    Leaf,
    MissingValue,
    SettingPath,
    SettingValue,
    write_path,
)

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    if value := _plain(text):
        yield from value_leaves(value, ())


def value_leaves(value: Any, path: SettingPath) -> Iterator[Leaf]:
    """Give the leaves of a value of lists and mappings."""
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


def read(text: str, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path, or MISSING."""
    value: Any = _plain(text)
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def put(text: str, path: SettingPath, value: SettingValue) -> str:
    """Set a value; tables on the way to it are made where they are missing.

    Raises:
        ValueError: something on the way is no table.
    """
    document = _parse(text)
    if len(path) == 1 and path[0] not in document:
        at = _top_end(text)
        gap = "\n" if text[:at] and not text[:at].endswith("\n") else ""
        return f"{text[:at]}{gap}{tomlkit.dumps({path[0]: value})}{text[at:]}"
    with _translate_errors():
        _table(document, path[:-1])[path[-1]] = value
        return tomlkit.dumps(document)


def restore(text: str, path: SettingPath, base: str) -> str:
    """Set the value that another text has at this path."""
    document = _parse(text)
    item: Any = _parse(base)
    with _translate_errors():
        for name in path:
            item = item[name]
        _table(document, path[:-1])[path[-1]] = item
        return tomlkit.dumps(document)


def drop(text: str, path: SettingPath) -> str:
    """Take a value out; the comments below the head of an empty table stay."""
    document = _parse(text)
    if (rest := _without_head(text, path)) is not None:
        return rest
    table: Any = document
    with _translate_errors():
        for name in path[:-1]:
            if name not in table:
                return text
            table = table[name]
        table.pop(path[-1], None)
        new = tomlkit.dumps(document)
    is_gap = new.endswith("\n\n") and not text.endswith("\n\n")
    return new[:-1] if is_gap else new  # tomlkit put it before a table


def _without_head(text: str, path: SettingPath) -> str | None:
    """Return the text without the head of an empty table that has comments.

    They may be about the table behind it, and tomlkit would take them out with it. None
    if there is no such table.
    """
    lines = _lines(text)
    heads = (n for n, line in enumerate(lines) if _path_of_head(line) == path)
    head = next((n for n in heads if _is_head(lines, n, lines[n])), None)
    if head is None:
        return None
    below = [
        *itertools.takewhile(
            lambda line: not line.lstrip().startswith("["), lines[head + 1 :]
        )
    ]
    words = [line.strip() for line in below if line.strip()]
    if not words or not all(word.startswith("#") for word in words):
        return None
    is_gap = head and not (lines[head - 1].strip() or below[0].strip())
    return "".join(lines[: head - 1 if is_gap else head] + lines[head + 1 :])


def _path_of_head(line: str) -> SettingPath:
    """Return the path of the table that a line begins, () if it begins none."""
    path: list[str] = []
    if not line.lstrip().startswith("[") or line.lstrip().startswith("[["):
        return ()
    try:
        table: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path)


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line."""
    return _LINE.findall(text)


def _top_end(text: str) -> int:
    """Return where another value above all tables may stand.

    That is below the last one there is, else below the comment that the file begins
    with: what comes before a table may be that table's own comment.
    """
    lines = _lines(text)
    top = next((n for n, line in enumerate(lines) if _is_head(lines, n, line)), None)
    if top is None:
        return len(text)
    while top and lines[top - 1].strip()[:1] in ("", "#"):
        top -= 1
    if not top:
        blank = next((n for n, line in enumerate(lines) if not line.strip()), 0)
        is_comment = all(line.startswith("#") for line in lines[:blank])
        top = blank if is_comment else 0
    return sum(map(len, lines[:top]))


def _is_head(lines: list[str], at: int, line: str) -> bool:
    """Tell whether a line begins a table, and no line of a longer value."""
    if not line.lstrip().startswith("["):
        return False
    try:
        tomllib.loads(line)  # most lines of a list fail here, in no time
        tomllib.loads("".join(lines[:at]))
    except tomllib.TOMLDecodeError:
        return False
    return True


def _table(document: tomlkit.TOMLDocument, path: SettingPath) -> Any:
    """Return a table of the document; make it, and those it is in, if need be."""
    table: Any = document
    for depth, name in enumerate(path):
        if name not in table:
            is_inline = isinstance(table, InlineTable)
            has_below = depth + 1 < len(path)
            new = tomlkit.table(is_super_table=has_below and not depth)
            table[name] = tomlkit.inline_table() if is_inline else new
        table = table[name]
        if not isinstance(table, AbstractTable | dict):
            raise ValueError(f"{write_path(path[: depth + 1])} is no table")
    return table


@lru_cache(maxsize=4)  # the same text is read several times; nobody changes a value
def _plain(text: str) -> dict[str, Any]:
    document = _parse(text)
    with _translate_errors():
        return document.unwrap()


def _parse(text: str) -> tomlkit.TOMLDocument:
    with _translate_errors():
        document = tomlkit.parse(text)
        if tomlkit.dumps(document) != text:  # tables that take turns, for one
            raise ValueError("it cannot be written back as it is")
    return document


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise ValueError for what tomlkit finds: a name may be found twice only late."""
    try:
        yield
    except TOMLKitError as error:
        raise ValueError(*error.args[:1]) from None  # a KeyError would be quoted
