"""Write the text of TOML with another value, or without one; `toml_text.py` proves it.

The text is taken apart into statements. A change touches one of them, or puts a line
between two, so all else stays byte for byte. A new line comes below the comment that
shows its key, as in the file of `byok config init`, else below the table's last key:
what follows may be a comment about the next table.
"""

import contextlib
import itertools
import tomllib
from collections.abc import Iterator
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, Table

from byok.client_settings.setting import MISSING, SettingPath, find_value, write_path
from byok.client_settings.toml_statements import (
    BLANK,
    HEAD,
    KEY,
    NOTE,
    Statement,
    commented_head,
    read_statement,
    shows_key,
    split_statements,
)

_MOST_TRIED = 5  # heads in comments: each text is read to the end


def new_item(value: Any) -> Any:
    """Return what tomlkit writes; a text of several lines is written as such."""
    if isinstance(value, str) and "\n" in value:
        raw = tomlkit.string(value, multiline=True).as_string()
        raw = raw.replace('"""', '"""\n', 1)  # its first line below the key
        if tomllib.loads(f"x = {raw}")["x"] == value:
            return tomlkit.value(raw)
    return value


def former_item(text: str, path: SettingPath) -> Any:
    """Return a value as it stands in a text, for tomlkit; one of heads is empty."""
    for statement in split_statements(text):
        if below := _holds(statement, path):
            with _translate_errors():
                return find_value(tomlkit.parse(statement.text), below)
    return {}


def ways_to_put(text: str, path: SettingPath, item: Any) -> Iterator[str]:
    """Give the texts that may be meant, the best first; some are no valid TOML."""
    statements = split_statements(text)
    for at, statement in enumerate(statements):
        if below := _holds(statement, path):
            yield _change(statements, at, below, item)
            return
    if isinstance(item, dict):
        yield text  # an empty table that is there
        yield from _ways_to_add(statements, path, "", tomlkit.dumps(item))
    else:
        line = tomlkit.dumps({path[-1]: item})
        yield from _ways_to_add(statements, path[:-1], path[-1], line)
    for at in range(len(statements) - 1, -1, -1):  # inline tables, dotted keys
        below = _below(statements[at], path)
        if below and isinstance(read_statement(statements[at]).get(below[0]), dict):
            yield _change(statements, at, below, item)


def without_path(text: str, path: SettingPath) -> str:
    """Return the text without a value or table, and without the blank line before it.

    Comments on lines of their own may be about the table behind it, and stay.
    """
    kept: list[str] = []
    after_gap = False
    for statement in split_statements(text):
        table = statement.table
        if statement.kind in (HEAD, KEY) and table and table[: len(path)] == path:
            if statement.kind == HEAD:
                after_gap = bool(kept) and not kept[-1].strip()
            continue
        if after_gap and statement.kind == BLANK:
            kept.pop()
        after_gap = False
        if below := _holds(statement, path):
            rest = _change_within(statement.text, below, MISSING)
            kept += [rest] if rest else []  # nothing is left of dotted keys
        else:
            kept.append(statement.text)
    return "".join(kept[:-1] if after_gap else kept)


def _below(statement: Statement, path: SettingPath) -> SettingPath:
    """Return the rest of a path within the table of a key; () if it is not there."""
    table = statement.table
    if statement.kind != KEY or table is None or path[: len(table)] != table:
        return ()
    return path[len(table) :]


def _holds(statement: Statement, path: SettingPath) -> SettingPath:
    """Return the rest of a path within a key that has a value there, else ()."""
    below = _below(statement, path)
    if below and find_value(read_statement(statement), below) is not MISSING:
        return below
    return ()


def _ways_to_add(
    statements: list[Statement], table: SettingPath, key: str, line: str
) -> Iterator[str]:
    """Give texts with a line more in a table, which may have to be made."""
    if not table:
        yield _insert(statements, -1, key, line)
        return
    for at, statement in enumerate(statements):
        if key and statement.kind == HEAD and statement.table == table:
            yield _insert(statements, at, key, line)
    head = f"[{'.'.join(tomlkit.key(part).as_string() for part in table)}]\n"
    shown = (at for at, one in enumerate(statements) if commented_head(one) == table)
    for at in itertools.islice(shown, _MOST_TRIED):
        yield _insert(statements, at, key, line, head)
    text = "".join(statement.text for statement in statements)
    yield f"{_with_end(text)}\n{head}{line}" if text else head + line


def _insert(
    statements: list[Statement], begin: int, key: str, line: str, head: str = ""
) -> str:
    """Insert a line into the table that begins at a statement; `head` goes below it.

    The values above all tables begin at -1.
    """
    at = begin if begin >= 0 else _title_end(statements)
    for place in range(begin + 1, len(statements)):
        statement = statements[place]
        if statement.kind == HEAD or commented_head(statement) is not None:
            break
        if statement.kind == KEY or shows_key(statement, key):
            at = place
        if shows_key(statement, key):
            break
    texts = [statement.text for statement in statements]
    if at >= 0:
        texts[at] = _with_end(texts[at])
    texts.insert(at + 1, line)
    texts.insert(begin + 1, head)
    return "".join(texts)


def _title_end(statements: list[Statement]) -> int:
    """Return the last line of the comment about the file, or -1.

    What comes before a table may be that table's own comment.
    """
    title = len([*itertools.takewhile(lambda one: one.kind == NOTE, statements)])
    is_of_table = [one.kind for one in statements[title : title + 1]] == [HEAD]
    return -1 if is_of_table else title - 1


def _with_end(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _change(statements: list[Statement], at: int, path: SettingPath, item: Any) -> str:
    texts = [statement.text for statement in statements]
    texts[at] = _change_within(texts[at], path, item)
    return "".join(texts)


def _change_within(text: str, path: SettingPath, item: Any) -> str:
    """Set a value within the text of a key, or take it out: MISSING."""
    with _translate_errors():
        document: Any = tomlkit.parse(text)
        table = document
        for name in path[:-1]:
            if name not in table:
                table[name] = tomlkit.inline_table()
            table = table[name]
        former = table.get(path[-1])
        if item is MISSING:
            del table[path[-1]]
        elif isinstance(former, Table):
            raise ValueError(f"{write_path(path)} is a table")
        elif isinstance(former, Array) and type(item) is list and "#" in text:
            _edit_list(former, item)
        else:
            table[path[-1]] = item
        return tomlkit.dumps(document)


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


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise ValueError for what tomlkit finds: a name may be found twice only late."""
    try:
        yield
    except TOMLKitError as error:
        raise ValueError(*error.args[:1]) from None  # a KeyError would be quoted
