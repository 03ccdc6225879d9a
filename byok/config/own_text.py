"""Change single settings in the text of a settings file.

The text is taken apart into statements. A change touches one of them, or puts a line
between two, so all else stays byte for byte. A new line comes below the comment that
shows its key, as in the file of `byok config init`, else below the table's last key:
what follows may be a comment about the next table.
"""

import copy
import tomllib
from collections.abc import Iterator
from typing import Any, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array

from byok.client_settings.setting import MISSING, MissingValue, SettingPath, write_path
from byok.config.toml_statements import (
    HEAD,
    KEY,
    Statement,
    commented_head,
    read_statement,
    shows_key,
    split_statements,
)

OwnValue: TypeAlias = bool | int | float | str | list[str] | dict[str, Any]


def put_setting(text: str, path: SettingPath, value: OwnValue) -> str:
    """Set a value; the table that it is in is made where it is missing.

    Raises:
        ValueError: the text is no TOML, or something on the way is no table.
    """
    given = tomllib.loads(text)
    if same_value(find_value(given, path), value):
        return text
    due = copy.deepcopy(given)
    _set(due, path, value)
    for new in _ways_to_put(text, path, value):
        if _reads_as(new, due):
            return new
    raise ValueError(f"{write_path(path)} could not be set")


def drop_setting(text: str, path: SettingPath) -> str:
    """Take a value or a table out; comments on lines of their own stay.

    Raises:
        ValueError: the text is no TOML, or the value is part of a larger one.
    """
    given = tomllib.loads(text)
    if find_value(given, path) is MISSING:
        return text
    new = "".join(_without(split_statements(text), path))
    if find_value(rest := tomllib.loads(new), path) is not MISSING or not same_value(
        _prune(rest, path), _prune(given, path)
    ):
        raise ValueError(f"{write_path(path)} could not be taken out")
    return new


def find_value(given: Any, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path of nested tables, or MISSING."""
    for name in path:
        if not isinstance(given, dict) or name not in given:
            return MISSING
        given = given[name]
    return given


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


def _set(table: dict[str, Any], path: SettingPath, value: OwnValue) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{write_path(path)} is in no table")
    table[path[-1]] = value


def _reads_as(text: str, due: dict[str, Any]) -> bool:
    try:
        return same_value(tomllib.loads(text), due)
    except tomllib.TOMLDecodeError:
        return False


def _ways_to_put(text: str, path: SettingPath, value: OwnValue) -> Iterator[str]:
    """Give the texts that may be meant, the best first; some are no valid TOML."""
    statements = split_statements(text)
    if (new := _change_statement(statements, path, value)) is not None:
        yield new
        return
    if isinstance(value, dict):
        table, key, line = path, "", ""
    else:
        table, key = path[:-1], path[-1]
        line = _line(key, value)
        for at, statement in enumerate(statements):
            if statement.kind == HEAD and statement.table == table:
                yield _insert(statements, at, key, line)
    head = f"[{'.'.join(tomlkit.key(part).as_string() for part in table)}]\n"
    for at, statement in enumerate(statements):
        if commented_head(statement) == table:
            yield _insert(statements, at, key, line, head)
    end = "" if text.endswith("\n") or not text else "\n"
    yield f"{text}{end}\n{head}{line}"
    if (joined := _join_table(statements, path, value)) is not None:
        yield joined


def _insert(
    statements: list[Statement], begin: int, key: str, line: str, head: str = ""
) -> str:
    """Insert a line into the table that begins at a statement; `head` goes below it."""
    at = begin
    for place in range(begin + 1, len(statements)):
        statement = statements[place]
        if statement.kind == HEAD or commented_head(statement) is not None:
            break
        if statement.kind == KEY or shows_key(statement, key):
            at = place
        if shows_key(statement, key):
            break
    texts = [statement.text for statement in statements]
    texts[-1] = _with_end(texts[-1]) if at == len(texts) - 1 else texts[-1]
    texts[at] += line
    if head:
        split = len(_with_end(statements[begin].text))
        texts[begin] = texts[begin][:split] + head + texts[begin][split:]
    return "".join(texts)


def _with_end(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _change_statement(
    statements: list[Statement], path: SettingPath, value: OwnValue
) -> str | None:
    """Change the statement that holds the value; None if none does."""
    for at, statement in enumerate(statements):
        below = _below(statement, path)
        if below and find_value(read_statement(statement), below) is not MISSING:
            return _replace(statements, at, _put_within(statement.text, below, value))
    return None


def _join_table(
    statements: list[Statement], path: SettingPath, value: OwnValue
) -> str | None:
    """Put a value into a table that a statement writes inline, or by dotted keys."""
    for at in range(len(statements) - 1, -1, -1):
        below = _below(statements[at], path)
        if below and isinstance(
            find_value(read_statement(statements[at]), below[:-1]), dict
        ):
            return _replace(
                statements, at, _put_within(statements[at].text, below, value)
            )
    return None


def _below(statement: Statement, path: SettingPath) -> SettingPath:
    """Return the rest of a path within the table of a key; () if it is not there."""
    table = statement.table
    if statement.kind != KEY or table is None or path[: len(table)] != table:
        return ()
    return path[len(table) :]


def _replace(statements: list[Statement], at: int, text: str) -> str:
    texts = [statement.text for statement in statements]
    return "".join([*texts[:at], text, *texts[at + 1 :]])


def _without(statements: list[Statement], path: SettingPath) -> Iterator[str]:
    """Give the texts without a value or table; comments are given all the same."""
    for statement in statements:
        table = statement.table
        if statement.kind in (HEAD, KEY) and table and table[: len(path)] == path:
            continue
        below = _below(statement, path)
        if not below or find_value(read_statement(statement), below) is MISSING:
            yield statement.text
        elif not _is_only(read_statement(statement), below):
            yield _drop_within(statement.text, below)


def _is_only(given: Any, path: SettingPath) -> bool:
    """Tell whether the tables hold nothing but the value at this path."""
    for name in path:
        if set(given) != {name}:
            return False
        given = given[name]
    return True


def _prune(given: dict[str, Any], path: SettingPath) -> dict[str, Any]:
    """Return the tables without the value at a path, and without empty ones on it."""
    given = copy.deepcopy(given)
    for depth in range(len(path), 0, -1):
        parent = find_value(given, path[: depth - 1])
        if isinstance(parent, dict) and path[depth - 1] in parent:
            if depth < len(path) and parent[path[depth - 1]] != {}:
                break
            del parent[path[depth - 1]]
    return given


def _line(key: str, value: OwnValue) -> str:
    return tomlkit.dumps({key: _item(value)})


def _item(value: OwnValue) -> Any:
    """Return what tomlkit writes; a text of several lines is written as such."""
    if isinstance(value, str) and "\n" in value:
        item = tomlkit.string("\n" + value, multiline=True)
        text = f"x = {item.as_string()}\n"
        if _reads_as(text, {"x": value}):
            return item
    return value


def _put_within(text: str, path: SettingPath, value: OwnValue) -> str:
    try:
        document: Any = tomlkit.parse(text)
        table = document
        for name in path[:-1]:
            table = table[name]
        former = table.get(path[-1])
        if isinstance(former, Array) and isinstance(value, list) and "#" in text:
            _edit_list(former, value)
        else:
            table[path[-1]] = _item(value)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(*error.args[:1]) from None


def _edit_list(array: Array, wanted: list[str]) -> None:
    """Change a list with comments in it by elements."""
    for at in range(len(array) - 1, -1, -1):
        if array[at] not in wanted:
            del array[at]
    for at, value in enumerate(wanted):
        if at >= len(array) or array[at] != value:
            array.insert(at, value)
    while len(array) > len(wanted):
        del array[len(array) - 1]


def _drop_within(text: str, path: SettingPath) -> str:
    try:
        document: Any = tomlkit.parse(text)
        table = document
        for name in path[:-1]:
            table = table[name]
        del table[path[-1]]
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise ValueError(*error.args[:1]) from None
