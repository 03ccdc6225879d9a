"""A valid TOML text as statements: heads of tables, keys, comments, blank lines."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from byok.client_settings.setting import SettingPath

HEAD: Final = "head"
KEY: Final = "key"
NOTE: Final = "note"
BLANK: Final = "blank"
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*|\n|[\[{]|[\]}]|[^\"'#\n\[\]{}]+|.",
    re.DOTALL,
)
_COMMENTED_HEAD = re.compile(r"\s*#[ \t]*(\[[^\[\]]+\])\s*")


class Statement(NamedTuple):
    """One statement: all of its lines with their ends.

    `table` is the path of the table that it is in, or that it begins; None stands for
    one in a list of tables.
    """

    kind: str
    text: str
    table: SettingPath | None


def split_statements(text: str) -> list[Statement]:
    """Take a text apart; the texts of all statements joined are the text again."""
    table: SettingPath | None = ()
    found = []
    for part in _parts(text):
        word = part.lstrip()
        if not word:
            kind = BLANK
        elif word.startswith("#"):
            kind = NOTE
        elif word.startswith("["):
            kind, table = HEAD, _path_of_head(part)
        else:
            kind = KEY
        found.append(Statement(kind, part, table))
    return found


def read_statement(statement: Statement) -> dict[str, Any]:
    """Return what a key sets, as tables within the statement's own one."""
    return tomllib.loads(statement.text)


def commented_head(statement: Statement) -> SettingPath | None:
    """Return the path of a table whose head is commented out, or None."""
    found = _COMMENTED_HEAD.fullmatch(statement.text)
    return _path_of_head(found[1]) if found and statement.kind == NOTE else None


def shows_key(statement: Statement, key: str) -> bool:
    """Tell whether a comment shows how a key is set, as `#port = 8317`."""
    shown = re.match(rf"\s*#[ \t]*([\"']?){re.escape(key)}\1\s*=", statement.text)
    return statement.kind == NOTE and shown is not None


def _parts(text: str) -> Iterator[str]:
    """Give the lines; a value of several lines makes one."""
    begin = depth = 0
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
            case "]" | "}":
                depth -= 1
            case "\n" if not depth:
                yield text[begin : token.end()]
                begin = token.end()
    if begin < len(text):
        yield text[begin:]


def _path_of_head(line: str) -> SettingPath | None:
    """Return the path of the table that a line begins; None for one of a list."""
    path: list[str] = []
    try:
        table: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path) if isinstance(table, dict) else None
