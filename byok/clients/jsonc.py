"""Find and place values in JSON with comments.

Everything that VS Code reads without a complaint is read: comments, and a comma behind
the last member. No maintained Python library does this: those that preserve comments
write the whole text anew, and so lose indentation and line ends.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

from byok.clients.bracketed import (
    UNIT,
    BracketReader,
    Edit,
    Node,
    Syntax,
    ValuePlace,
    append_part,
    cut_part,
    locate_path,
    own_indent,
    part_indent,
    splice,
)
from byok.clients.settings_text import (
    MISSING,
    Leaf,
    SettingPath,
    SettingValue,
    write_path,
)
from byok.core.wire.json_body import parse_json

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')


def _parse_scalar(raw: str) -> Any:
    return parse_json(raw.encode("utf-8", "surrogatepass"))


_SYNTAX = Syntax(
    trivia=re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL),
    key=_STRING,
    quoted=_STRING,
    scalar=re.compile(
        r"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null)(?![\w.+-])"
    ),
    equals=":",
    read_key=lambda raw: (str(_parse_scalar(raw)),),
    remarks=re.compile(r"[ \t\r]*(?://[^\n]*|/\*.*?\*/)", re.DOTALL),
)


@lru_cache(maxsize=4)  # the same text is read several times for each change
def parse_nodes(text: str) -> Node | None:
    """Return the value of a text, or None if there are only comments in it.

    Raises:
        ValueError: it cannot be read, here as in the other functions.
    """
    return BracketReader(text, _SYNTAX).read_document()


def leaves(text: str) -> Iterator[Leaf]:
    """Yield all values without members, as they are written."""
    root = parse_nodes(text)
    if root is not None:
        yield from _leaves(text, root, ())


def _leaves(text: str, node: Node, path: SettingPath) -> Iterator[Leaf]:
    for part in node.parts:
        yield from _leaves(text, part.node, (*path, *(part.key or ("[]",))))
    if not node.parts:
        is_scalar = node.members is None and node.items is None
        yield Leaf(path, text[node.start : node.end] if is_scalar else "")


def read(text: str, path: SettingPath) -> Any:
    """Return the value at a path, or MISSING."""
    place = _locate(text, path)
    return _plain_value(text, place.node) if place and place.node else MISSING


def _plain_value(text: str, node: Node) -> Any:
    """Return the value of a node; of members of one name the last counts."""
    if node.members is not None:
        return {m.key[0]: _plain_value(text, m.node) for m in node.members}
    if node.items is not None:
        return [_plain_value(text, item.node) for item in node.items]
    return _parse_scalar(text[node.start : node.end])


def read_raw(text: str, path: SettingPath) -> str | None:
    """Return a value as it is written in a text; None if there is none."""
    place = _locate(text, path)
    node = place.node if place else None
    return text[node.start : node.end] if node else None


def write_value(value: SettingValue) -> str:
    """Write a value as the format has it."""
    return orjson.dumps(value).decode()


def ways_to_put(text: str, path: SettingPath, raw: str) -> Iterator[str]:
    """Yield the text with a value; missing objects on its path are created."""
    place = _locate(text, path)
    if place is None:
        gap = "\n" if text and not text.endswith("\n") else ""
        yield f"{text}{gap}{_nest(path, raw, '', UNIT)}\n"
    elif place.node:
        yield splice(text, [Edit(place.node.start, place.node.end, raw)])
    elif place.part:
        parent = write_path(path[: -len(place.remaining)]) or "the whole file"
        raise ValueError(f"{parent} is no object")
    else:
        name, *below = place.remaining
        root = parse_nodes(text)
        first = root.members[0] if root and root.members else None
        unit = (own_indent(text, first.start) if first else None) or UNIT
        indent = part_indent(text, place.owner, unit)
        new = f"{write_value(name)}: {_nest(tuple(below), raw, indent, unit)}"
        yield splice(text, append_part(text, place.owner, new, _SYNTAX, indent=indent))


def without_path(text: str, path: SettingPath) -> str:
    """Remove a member, with its line if nothing else is on it."""
    place = _locate(text, path)
    if place and place.part and place.node:
        return splice(text, cut_part(text, place.owner, place.part))
    return text


def _locate(text: str, path: SettingPath) -> ValuePlace | None:
    root = parse_nodes(text)
    return locate_path(root, path) if root else None


def _nest(path: SettingPath, raw: str, indent: str, unit: str) -> str:
    """Write a value inside the objects of its path."""
    if not path:
        return raw
    inner = indent + unit
    member = f"{write_value(path[0])}: {_nest(path[1:], raw, inner, unit)}"
    return f"{{\n{inner}{member}\n{indent}}}"
