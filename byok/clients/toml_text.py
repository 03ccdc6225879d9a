"""Places of TOML: statements, and the values within them.

A change touches one statement, or puts a line between two. A new line comes below the
comment that shows its key, as in the file of `byok config init`, else below the table's
last key: what follows may be a comment about the next table.
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
from byok.clients.editor import (
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
_MOST_TRIED = 5  # heads in comments: each text is read to the end
_COMMENTED_HEAD = re.compile(r"\s*#[ \t]*(\[[^\[\]]+\])\s*")
_EMPTY_TABLE = re.compile(r"\{\s*\}")
_REST_OF_LINE = re.compile(r"[ \t\r]*(?:#[^\n]*)?\n?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""


def _read_key(raw: str) -> SettingPath:
    return _walk_names(tomllib.loads(f"{raw} = 0"))[0]


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
    read_key=_read_key,
    remarks=re.compile(r"[ \t\r]*#[^\n]*"),
)


class Statement(NamedTuple):
    """One statement: all of its lines with their ends, from `start` of the text on.

    `table` is the path of the table that it is in, or that it begins; None stands for
    one in a list of tables. `member` is what a key sets.
    """

    kind: str
    text: str
    table: SettingPath | None
    start: int
    member: Part | None = None

    @property
    def end(self) -> int:
        """Where it ends in the text."""
        return self.start + len(self.text)

    def shows_key(self, key: str) -> bool:
        """Tell whether it is a comment on how a key is set, as `#port = 8317`."""
        shown = re.match(rf"\s*#[ \t]*([\"']?){re.escape(key)}\1\s*=", self.text)
        return self.kind == NOTE and shown is not None

    @property
    def commented_head(self) -> SettingPath | None:
        """The path of a table whose head is commented out, or None."""
        found = _COMMENTED_HEAD.fullmatch(self.text) if self.kind == NOTE else None
        return _path_of_head(found[1]) if found else None


def split_statements(text: str) -> list[Statement]:
    """Take a valid text apart; the texts of all statements joined are the text."""
    table: SettingPath | None = ()
    found = list[Statement]()
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
            at = line_end - len(word)
            member = BracketReader(text, _SYNTAX, at).read_member()
            line_end = text.find("\n", member.node.end) + 1 or len(text)
        found.append(Statement(kind, text[start:line_end], table, start, member))
        start = line_end
    return found


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members, sorted: tables may stand in any order.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    if value := _load(text):
        yield from sorted(value_leaves(value, ()), key=lambda leaf: leaf.path)


def read(text: str, path: SettingPath) -> Any:
    """Return the value at a path, or MISSING; nobody may change it."""
    return find_value(_load(text), path)


def read_raw(text: str, path: SettingPath) -> str | None:
    """Return a value as it stands there, None if it does not; of heads it is {}."""
    if isinstance(find_value(_load(text), path), MissingValue):
        return None
    for statement in split_statements(text):
        place = _locate(statement, path)
        if place and place.found:
            return text[place.found.start : place.found.end]
    return "{}"


def write_value(value: SettingValue) -> str:
    """Write a value; a text of several lines is written as such."""
    if isinstance(value, str):
        return _write_lines(value) if "\n" in value else _quote(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_quote, value))}]"
    if isinstance(value, dict):
        rows = [f"{_write_key((name,))} = {write_value(value[name])}" for name in value]
        return f"{{{', '.join(rows)}}}"
    return str(value).lower()  # a number, true, false


def ways_to_put(text: str, path: SettingPath, raw: str) -> Iterator[str]:
    """Give the texts that may be meant, the best first; some are no valid TOML."""
    statements = split_statements(text)
    _check_tables(_load(text), path)
    for statement in statements:
        place = _locate(statement, path)
        if place and place.found:
            yield _replace(text, place.found, raw)
            return
    if _EMPTY_TABLE.fullmatch(raw):
        yield text  # an empty table that is there
        yield from _ways_to_add(text, statements, path, "", "")
    else:
        line = f"{_write_key(path[-1:])} = {raw}\n"
        yield from _ways_to_add(text, statements, path[:-1], path[-1], line)
    for statement in reversed(statements):  # inline tables, dotted keys
        place = _locate(statement, path)
        if place and place.part is None:
            yield _put_within(text, statement, place, raw)


def without_path(text: str, path: SettingPath) -> str:
    """Return the text without a value or table, and without the blank line before it.

    Comments on lines of their own may be about the table behind it, and stay.
    """
    edits = list[Edit]()
    before: Statement | None = None  # the last one that stays
    gap: Statement | None = None  # the blank line before the tables that go
    for statement in split_statements(text):
        table, member = statement.table, statement.member
        whole = (*(table or ()), *(member.key if member else ()))
        if (
            statement.kind in (HEAD, KEY)
            and table is not None
            and whole[: len(path)] == path
        ):
            edits.append(Edit(statement.start, statement.end, ""))
            if statement.kind == HEAD:
                gap = before if before and before.kind == BLANK else None
            continue
        if gap and statement.kind == BLANK:
            edits.append(Edit(gap.start, gap.end, ""))
        gap, before = None, statement
        place = _locate(statement, path)
        if place and place.part and place.found:
            edits += cut_part(text, place.owner, place.part)
    if gap:
        edits.append(Edit(gap.start, gap.end, ""))
    return splice(text, edits)


@lru_cache(maxsize=4)  # the same text is read several times; nobody changes a value
def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _check_tables(given: Any, path: SettingPath) -> None:
    """Raise ValueError if something on the way to a path is no table."""
    for depth in range(1, len(path)):
        above = find_value(given, path[:depth])
        if not isinstance(above, dict | MissingValue):
            raise ValueError(f"{write_path(path[:depth])} is no table")


def _locate(statement: Statement, path: SettingPath) -> ValuePlace | None:
    """Return where a statement has a path, or a table on the way to it."""
    table, member = statement.table, statement.member
    if member is None or table is None or path[: len(table)] != table:
        return None
    rest = path[len(table) :]
    if member.key[:1] != rest[:1]:
        return None
    return locate_path(Node(statement.start, statement.end, (member,)), rest)


def _ways_to_add(
    text: str, statements: list[Statement], table: SettingPath, key: str, line: str
) -> Iterator[str]:
    """Give texts with a line more in a table, which may have to be made."""
    if not table:
        yield splice(text, _insert_line(statements, -1, key, line))
        return
    for at, statement in enumerate(statements):
        if key and statement.kind == HEAD and statement.table == table:
            yield splice(text, _insert_line(statements, at, key, line))
    head = f"[{_write_key(table)}]\n"
    shown = (at for at, one in enumerate(statements) if one.commented_head == table)
    for at in itertools.islice(shown, _MOST_TRIED):
        yield splice(text, _insert_line(statements, at, key, line, head))
    gap = "" if text.endswith("\n") else "\n"
    yield f"{text}{gap}\n{head}{line}" if text else head + line


def _insert_line(
    statements: list[Statement], begin: int, key: str, line: str, head: str = ""
) -> list[Edit]:
    """Insert a line into the table that begins at a statement; `head` goes below it.

    The values above all tables begin at -1.
    """
    at = begin if begin >= 0 else _title_end(statements)
    for place in range(begin + 1, len(statements)):
        statement = statements[place]
        if statement.kind == HEAD or statement.commented_head is not None:
            break
        if statement.kind == KEY or statement.shows_key(key):
            at = place
        if statement.shows_key(key):
            break
    if begin == at:
        return [_edit_behind(statements, at, head + line)]
    return [_edit_behind(statements, begin, head), _edit_behind(statements, at, line)]


def _edit_behind(statements: list[Statement], at: int, new: str) -> Edit:
    """Insert lines behind a statement, or before all: -1."""
    if at < 0:
        return Edit(0, 0, new)
    end = statements[at].end
    return Edit(end, end, new if statements[at].text.endswith("\n") else f"\n{new}")


def _title_end(statements: list[Statement]) -> int:
    """Return the last line of the comment about the file, or -1.

    What comes before a table may be that table's own comment.
    """
    title = len([*itertools.takewhile(lambda one: one.kind == NOTE, statements)])
    is_of_table = [one.kind for one in statements[title : title + 1]] == [HEAD]
    return -1 if is_of_table else title - 1


def _put_within(text: str, statement: Statement, place: ValuePlace, raw: str) -> str:
    """Put a value into an inline table, or below a dotted key as another one."""
    if statement.member in place.owner.parts:
        line = f"{_write_key(place.rest)} = {raw}\n"
        return splice(text, [_edit_behind([statement], 0, line)])
    first, *below = place.rest
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
    """Change a list with comments in it: items that stay keep their lines."""
    node = BracketReader(old, _SYNTAX).read_value()
    former, due = (tomllib.loads(f"x = {raw}")["x"] for raw in (old, new))
    done = _line_end(old, 1)
    head, lines = old[:done], dict[str, str]()
    for part, value in zip(node.parts, former, strict=True):
        after = max(part.comma + 1, part.node.end)
        end = _line_end(old, after)
        line = f"{old[done : part.node.end]},{old[after:end]}"
        lines.setdefault(repr(value), line)
        done = end
    indent = part_indent(old, node)
    rows = [lines.pop(repr(one), f"{indent}{_quote(one)},\n") for one in due]
    return "".join([head, *rows, old[done:]])


def _line_end(text: str, at: int) -> int:
    """Return the end of a line, or of the blanks if more than a comment follows."""
    found = _REST_OF_LINE.match(text, at)
    return found.end() if found else at


def _write_key(path: SettingPath) -> str:
    return ".".join(name if _BARE.fullmatch(name) else _quote(name) for name in path)


def _quote(text: str) -> str:
    return orjson.dumps(text).decode().replace("\x7f", "\\u007f")


def _write_lines(text: str) -> str:
    """Write a text of several lines, its first line below the key."""
    short = _quote(text)
    plain = re.sub(
        r"\\(.)", lambda m: {"n": "\n", '"': '"'}.get(m[1], m[0]), short[1:-1]
    )
    raw = '"""\n' + plain.replace('"""', '""\\"') + '"""'
    return raw if tomllib.loads(f"x = {raw}")["x"] == text else short


def _path_of_head(line: str) -> SettingPath | None:
    """Return the path of the table that a line begins; None for one of a list."""
    try:
        path, last = _walk_names(tomllib.loads(line))
    except tomllib.TOMLDecodeError:
        return None
    return path if isinstance(last, dict) else None


def _walk_names(table: Any) -> tuple[SettingPath, Any]:
    """Return the names on the only way into tables, and what is at its end."""
    path = list[str]()
    while isinstance(table, dict) and table:
        ((name, table),) = table.items()
        path.append(name)
    return tuple(path), table
