"""Find and place values in TOML: statements, and the values within them.

A change edits one statement, or inserts a line between two. A new line comes below the
comment that shows its key, as in the file of `byok config init`, else below the table's
last key: a comment after that may be about the next table.
"""

import itertools
import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from byok.clients.bracketed import (
    BracketReader,
    Edit,
    Node,
    Part,
    Syntax,
    ValuePlace,
    append_part,
    cut_part,
    locate_path,
    part_indent,
    splice,
)
from byok.clients.settings_text import (
    Leaf,
    MissingValue,
    SettingPath,
    SettingValue,
    find_value,
    value_leaves,
    write_path,
)

HEAD: Final = "head"
KEY: Final = "key"
NOTE: Final = "note"
BLANK: Final = "blank"
_MAX_COMMENTED_HEADS = 5  # that are tried: each candidate text is parsed completely
_COMMENTED_HEAD = re.compile(r"\s*#[ \t]*(\[[^\[\]]+\])\s*")
_EMPTY_TABLE = re.compile(r"\{\s*\}")
_LINE_REMAINDER = re.compile(r"[ \t\r]*(?:#[^\n]*)?\n?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""


_SYNTAX = Syntax(
    trivia=re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+"),
    key=re.compile(rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"),
    quoted=re.compile(
        r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|"
        r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'",
        re.DOTALL,
    ),
    scalar=re.compile(r"[^\s,#\[\]{}]+(?: \d[^\s,#\[\]{}]*)?"),
    equals="=",
    read_key=lambda raw: _walk_names(tomllib.loads(f"{raw} = 0"))[0],
    remarks=re.compile(r"[ \t\r]*#[^\n]*"),
)


class Statement(NamedTuple):
    """One statement: all of its lines with their line ends, at the offset `start`.

    `table` is the path of the table that it is in, or that it begins; None for one in a
    list of tables. `member` is the key and value that it sets.
    """

    kind: str
    text: str
    table: SettingPath | None
    start: int
    member: Part | None = None

    @property
    def end(self) -> int:
        """The offset of its end."""
        return self.start + len(self.text)

    def shows_key(self, key: str) -> bool:
        """Tell whether it is a comment that shows a key, such as `#port = 8317`."""
        match = re.match(rf"\s*#[ \t]*([\"']?){re.escape(key)}\1\s*=", self.text)
        return self.kind == NOTE and match is not None

    @property
    def commented_head(self) -> SettingPath | None:
        """The path of a table whose head is commented out, or None."""
        match = _COMMENTED_HEAD.fullmatch(self.text) if self.kind == NOTE else None
        return _path_of_head(match[1]) if match else None


def split_statements(text: str) -> list[Statement]:
    """Split a valid text into statements, whose texts joined are the text again."""
    table: SettingPath | None = ()
    statements = list[Statement]()
    start = 0
    while start < len(text):
        line_end = text.find("\n", start) + 1 or len(text)
        word, member = text[start:line_end].lstrip(), None
        if not word:
            kind = BLANK
        elif word.startswith("#"):
            kind = NOTE
        elif word.startswith("["):
            kind, table = HEAD, _path_of_head(word)
        else:
            kind = KEY
            offset = line_end - len(word)
            member = BracketReader(text, _SYNTAX, offset).read_member()
            line_end = text.find("\n", member.node.end) + 1 or len(text)
        statements.append(Statement(kind, text[start:line_end], table, start, member))
        start = line_end
    return statements


def leaves(text: str) -> Iterator[Leaf]:
    """Yield all values without members, sorted, as tables may be in any order.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    if value := _load(text):
        yield from sorted(value_leaves(value, ()), key=lambda leaf: leaf.path)


def read(text: str, path: SettingPath) -> Any:
    """Return the value at a path, or MISSING; callers must not change it."""
    return find_value(_load(text), path)


def read_raw(text: str, path: SettingPath) -> str | None:
    """Return the text of a value, None if there is none, {} for a table with a head."""
    if isinstance(find_value(_load(text), path), MissingValue):
        return None
    for statement in split_statements(text):
        place = _locate(statement, path)
        if place and place.node:
            return text[place.node.start : place.node.end]
    return "{}"


def write_value(value: SettingValue) -> str:
    """Write a value; a text of several lines becomes a multi-line string."""
    if isinstance(value, str):
        return _write_lines(value) if "\n" in value else _quote(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_quote, value))}]"
    if isinstance(value, dict):
        rows = [f"{_write_key((name,))} = {write_value(value[name])}" for name in value]
        return f"{{{', '.join(rows)}}}"
    return str(value).lower()  # a number, true, false


def ways_to_put(text: str, path: SettingPath, raw: str) -> Iterator[str]:
    """Yield candidate texts, the best first; some may be invalid TOML."""
    statements = split_statements(text)
    _check_tables(_load(text), path)
    for statement in statements:
        place = _locate(statement, path)
        if place and place.node:
            yield _replace(text, place.node, raw)
            return
    if _EMPTY_TABLE.fullmatch(raw):
        yield text  # the empty table may exist already
        yield from _ways_to_add(text, statements, path, "", "")
    else:
        line = f"{_write_key(path[-1:])} = {raw}\n"
        yield from _ways_to_add(text, statements, path[:-1], path[-1], line)
    for statement in reversed(statements):  # inline tables, dotted keys
        place = _locate(statement, path)
        if place and place.part is None:
            yield _put_into_statement(text, statement, place, raw)


def without_path(text: str, path: SettingPath) -> str:
    """Return the text without a value or table, and without the blank line before it.

    Comments on lines of their own stay, as they may be about the next table.
    """
    edits = list[Edit]()
    previous: Statement | None = None  # the last statement that stays
    gap: Statement | None = None  # the blank line before the removed tables
    for statement in split_statements(text):
        table, member = statement.table, statement.member
        full_path = (*(table or ()), *(member.key if member else ()))
        if (
            statement.kind in (HEAD, KEY)
            and table is not None
            and full_path[: len(path)] == path
        ):
            edits.append(Edit(statement.start, statement.end, ""))
            if statement.kind == HEAD:
                gap = previous if previous and previous.kind == BLANK else None
            continue
        if gap and statement.kind == BLANK:
            edits.append(Edit(gap.start, gap.end, ""))
        gap, previous = None, statement
        place = _locate(statement, path)
        if place and place.part and place.node:
            edits += cut_part(text, place.owner, place.part)
    if gap:
        edits.append(Edit(gap.start, gap.end, ""))
    return splice(text, edits)


@lru_cache(maxsize=4)  # the same text is read several times; callers change no value
def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_tables(values: Any, path: SettingPath) -> None:
    """Raise ValueError if a parent of a path exists and is no table."""
    for depth in range(1, len(path)):
        parent = find_value(values, path[:depth])
        if not isinstance(parent, dict | MissingValue):
            raise ValueError(f"{write_path(path[:depth])} is no table")


def _locate(statement: Statement, path: SettingPath) -> ValuePlace | None:
    """Return the place of a path within a statement; None if it cannot be there."""
    table, member = statement.table, statement.member
    if member is None or table is None or path[: len(table)] != table:
        return None
    names = path[len(table) :]
    if member.key[:1] != names[:1]:
        return None
    return locate_path(Node(statement.start, statement.end, (member,)), names)


def _ways_to_add(
    text: str, statements: list[Statement], table: SettingPath, key: str, line: str
) -> Iterator[str]:
    """Yield texts with a new line in a table, which is created if needed."""
    if not table:
        yield splice(text, _insert_line(statements, -1, key, line))
        return
    for index, statement in enumerate(statements):
        if key and statement.kind == HEAD and statement.table == table:
            yield splice(text, _insert_line(statements, index, key, line))
    head = f"[{_write_key(table)}]\n"
    commented = (n for n, s in enumerate(statements) if s.commented_head == table)
    for index in itertools.islice(commented, _MAX_COMMENTED_HEADS):
        yield splice(text, _insert_line(statements, index, key, line, head))
    gap = "" if text.endswith("\n") else "\n"
    yield f"{text}{gap}\n{head}{line}" if text else head + line


def _insert_line(
    statements: list[Statement], start: int, key: str, line: str, head: str = ""
) -> list[Edit]:
    """Insert a line into the table that begins at the index `start`.

    The values above all tables begin at -1. A `head` is inserted below a commented one.
    """
    target = start if start >= 0 else _title_end(statements)
    for index in range(start + 1, len(statements)):
        statement = statements[index]
        if statement.kind == HEAD or statement.commented_head is not None:
            break
        if statement.kind == KEY or statement.shows_key(key):
            target = index
        if statement.shows_key(key):
            break
    if start == target:
        return [_insert_behind(statements, target, head + line)]
    return [
        _insert_behind(statements, start, head),
        _insert_behind(statements, target, line),
    ]


def _insert_behind(statements: list[Statement], index: int, new: str) -> Edit:
    """Insert lines behind a statement, or at the start of the file (index -1)."""
    if index < 0:
        return Edit(0, 0, new)
    end = statements[index].end
    return Edit(end, end, new if statements[index].text.endswith("\n") else f"\n{new}")


def _title_end(statements: list[Statement]) -> int:
    """Return the index of the last line of the comment about the file, or -1.

    A comment directly above a table is about the table, not about the file.
    """
    length = len([*itertools.takewhile(lambda s: s.kind == NOTE, statements)])
    is_of_table = [s.kind for s in statements[length : length + 1]] == [HEAD]
    return -1 if is_of_table else length - 1


def _put_into_statement(
    text: str, statement: Statement, place: ValuePlace, raw: str
) -> str:
    """Put a value into an inline table, or as a new line below its dotted key."""
    if statement.member in place.owner.parts:
        line = f"{_write_key(place.remaining)} = {raw}\n"
        return splice(text, [_insert_behind([statement], 0, line)])
    first, *below = place.remaining
    for name in reversed(below):
        raw = f"{{{_write_key((name,))} = {raw}}}"
    new = f"{_write_key((first,))} = {raw}"
    return splice(text, append_part(text, place.owner, new, _SYNTAX, indent=None))


def _replace(text: str, node: Node, raw: str) -> str:
    old = text[node.start : node.end]
    if node.items and "#" in old and raw.startswith("[") and "\n" not in raw:
        raw = _change_items(old, raw)
    return splice(text, [Edit(node.start, node.end, raw)])


def _change_items(old: str, new: str) -> str:
    """Change a list that has comments; items that stay keep their lines."""
    node = BracketReader(old, _SYNTAX).read_value()
    old_items, new_items = (tomllib.loads(f"x = {raw}")["x"] for raw in (old, new))
    offset = _line_end(old, 1)
    head, lines = old[:offset], dict[str, str]()
    for part, value in zip(node.parts, old_items, strict=True):
        part_end = max(part.comma + 1, part.node.end)
        end = _line_end(old, part_end)
        line = f"{old[offset : part.node.end]},{old[part_end:end]}"
        lines.setdefault(repr(value), line)
        offset = end
    indent = part_indent(old, node)
    rows = [lines.pop(repr(item), f"{indent}{_quote(item)},\n") for item in new_items]
    return "".join([head, *rows, old[offset:]])


def _line_end(text: str, offset: int) -> int:
    """Return the end of a line, or of the blanks if more than a comment follows."""
    match = _LINE_REMAINDER.match(text, offset)
    return match.end() if match else offset


def _write_key(path: SettingPath) -> str:
    return ".".join(name if _BARE.fullmatch(name) else _quote(name) for name in path)


def _quote(text: str) -> str:
    return orjson.dumps(text).decode().replace("\x7f", "\\u007f")


def _write_lines(text: str) -> str:
    """Write a text of several lines, starting on the line below the key."""
    short = _quote(text)
    plain = re.sub(
        r"\\(.)", lambda m: {"n": "\n", '"': '"'}.get(m[1], m[0]), short[1:-1]
    )
    raw = '"""\n' + plain.replace('"""', '""\\"') + '"""'
    return raw if tomllib.loads(f"x = {raw}")["x"] == text else short


def _path_of_head(line: str) -> SettingPath | None:
    """Return the path of the table that a head begins; None for a list of tables."""
    try:
        path, last = _walk_names(tomllib.loads(line))
    except tomllib.TOMLDecodeError:
        return None
    return path if isinstance(last, dict) else None


def _walk_names(table: Any) -> tuple[SettingPath, Any]:
    """Return the path of single names into nested tables, and the value at its end."""
    path = list[str]()
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path), table
