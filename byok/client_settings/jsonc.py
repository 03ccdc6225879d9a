"""Change single values of JSON with comments, and nothing else in the text.

No maintained Python library does this: those that keep comments write the whole text
anew, and so lose indentation and line ends.
"""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from byok.client_settings.jsonc_nodes import (
    Member,
    Node,
    parse_nodes,
    plain_value,
    trivia_end,
)
from byok.client_settings.setting import (
    MISSING,
    Leaf,
    MissingValue,
    SettingPath,
    SettingValue,
    write_path,
)

_UNIT = "    "  # the indentation of a file that has none; VS Code's default
_BLANKS = " \t\r"


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members, as they stand there.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    root = parse_nodes(text)
    if root is not None:
        yield from _leaves(text, root, ())


def _leaves(text: str, node: Node, path: SettingPath) -> Iterator[Leaf]:
    below = [(m.key, m.node) for m in node.members or ()]
    below += [("[]", item) for item in node.items or ()]
    for name, child in below:
        yield from _leaves(text, child, (*path, name))
    if not below:
        is_empty = node.members is not None or node.items is not None
        yield Leaf(path, "" if is_empty else text[node.start : node.end])


def read(text: str, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path, or MISSING."""
    node = _find(text, path)
    return MISSING if node is None else plain_value(text, node)


def put(text: str, path: SettingPath, value: SettingValue) -> str:
    """Set a value; objects on the way to it are made where they are missing.

    Raises:
        ValueError: a name on the way stands there twice, or is no object.
    """
    return _put(text, path, orjson.dumps(value).decode())


def restore(text: str, path: SettingPath, base: str) -> str:
    """Set the value that another text has at this path, as it stands there."""
    node = _find(base, path)
    if node is None:
        raise ValueError(f"{write_path(path)} is not in the former text")
    return _put(text, path, base[node.start : node.end])


def drop(text: str, path: SettingPath) -> str:
    """Take a member out, with its line if nothing else is on it."""
    node = parse_nodes(text)
    for name in path[:-1]:
        member = _member(node, name) if node else None
        node = member.node if member else None
    member = _member(node, path[-1]) if node else None
    if node is None or node.members is None or member is None:
        return text
    return _without(text, node.members, node.members.index(member))


def _find(text: str, path: SettingPath) -> Node | None:
    node = parse_nodes(text)
    for name in path:
        member = _member(node, name) if node else None
        node = member.node if member else None
    return node


def _member(node: Node, name: str) -> Member | None:
    same = [member for member in node.members or () if member.key == name]
    if len(same) > 1:
        raise ValueError(f'"{name}" stands there twice')
    return same[0] if same else None


def _put(text: str, path: SettingPath, raw: str) -> str:
    node = parse_nodes(text)
    if node is None:
        gap = "\n" if text and not text.endswith("\n") else ""
        return f"{text}{gap}{_nest(path, raw, '', _UNIT)}\n"
    for depth, name in enumerate(path):
        if node.members is None:
            where = write_path(path[:depth]) or "the whole file"
            raise ValueError(f"{where} is no object")
        member = _member(node, name)
        if member is None:
            return _insert(text, node, path[depth:], raw)
        node = member.node
    return text[: node.start] + raw + text[node.end :]


def _nest(path: SettingPath, raw: str, indent: str, unit: str) -> str:
    """Write a value inside of the objects that lead to it."""
    if not path:
        return raw
    inner = indent + unit
    member = f"{_quote(path[0])}: {_nest(path[1:], raw, inner, unit)}"
    return f"{{\n{inner}{member}\n{indent}}}"


def _quote(name: str) -> str:
    return orjson.dumps(name).decode()


def _insert(text: str, node: Node, path: SettingPath, raw: str) -> str:
    """Insert a member behind the last one, with that one's indentation."""
    unit = _unit(text)
    indent, members = _indent(text, node, unit), node.members or ()
    member = f"{_quote(path[0])}: {_nest(path[1:], raw, indent, unit)}"
    if not members:
        return _insert_first(text, node, f"\n{indent}{member}")
    last = members[-1]
    after = last.comma + 1 if last.comma >= 0 else last.node.end
    is_one_line = "\n" not in text[node.start : trivia_end(text, after)]
    ending = "," if last.comma >= 0 else ""
    if is_one_line:
        new, place = f" {member}{ending}", after
    else:
        new, place = f"\n{indent}{member}{ending}", _remarks_end(text, after)
    comma = "" if last.comma >= 0 else ","
    end = last.node.end
    return text[:end] + comma + text[end:place] + new + text[place:]


def _insert_first(text: str, node: Node, new: str) -> str:
    """Insert the only member behind the comments of an object."""
    end = node.end - 1
    place = node.start + 1 + len(text[node.start + 1 : end].rstrip(_BLANKS + "\n"))
    newline = "" if "\n" in text[place:end] else f"\n{_line_indent(text, node.start)}"
    return text[:place] + new + newline + text[place:]


def _remarks_end(text: str, at: int) -> int:
    """Return where the comments on the rest of a line end."""
    end = trivia_end(text, at)
    rest, done = text[at:end], 0
    while found := re.match(r"[ \t\r]*(?://[^\n]*|/\*.*?\*/)", rest[done:], re.DOTALL):
        done += found.end()
    return at + len(rest[:done].rstrip(_BLANKS))


def _unit(text: str) -> str:
    """Return what a member of the root is indented by."""
    root = parse_nodes(text)
    first = root.members[0] if root and root.members else None
    own = _own_indent(text, first.start) if first else None
    return own or _UNIT


def _indent(text: str, node: Node, unit: str) -> str:
    """Return the indentation of the first member that has a line of its own."""
    for member in node.members or ():
        own = _own_indent(text, member.start)
        if own is not None:
            return own
    return _line_indent(text, node.start) + unit


def _own_indent(text: str, start: int) -> str | None:
    """Return the blanks before a place, if there is nothing else on its line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    at_line = "\n" in text[:start]
    return before if at_line and not before.strip(_BLANKS) else None


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _without(text: str, members: tuple[Member, ...], at: int) -> str:
    member = members[at]
    start = member.start
    end = member.comma + 1 if member.comma >= 0 else member.node.end
    line = text.rfind("\n", 0, start) + 1
    rest = text.find("\n", end)
    before, behind = text[line:start], text[end : None if rest < 0 else rest]
    if rest >= 0 and not (before.strip(_BLANKS) or behind.strip(_BLANKS)):
        start, end = line, rest + 1
    elif member.comma >= 0:
        end += len(behind) - len(behind.lstrip(" \t"))
    else:
        start -= len(before) - len(before.rstrip(" \t"))
    text = text[:start] + text[end:]
    if member.comma < 0 and at:  # the comma before it would be left over
        comma = members[at - 1].comma
        text = text[:comma] + text[comma + 1 :]
    return text
