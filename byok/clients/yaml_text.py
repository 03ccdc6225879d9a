"""Places of YAML: values at the top, and elements of lists at the top.

PyYAML tells where each value stands. Libraries that write YAML with its comments write
the whole text anew, and change blanks, quotes and long lines.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from byok.clients.bracketed import Edit, splice
from byok.clients.editor import (
    MAX_DEPTH,
    MISSING,
    Leaf,
    SettingPath,
    SettingValue,
    value_leaves,
)

_MOST_NODES = 200_000  # with each alias counted as what it stands for


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    yield from _all_leaves(text)


@lru_cache(maxsize=4)  # the same text is read before and after a change
def _all_leaves(text: str) -> tuple[Leaf, ...]:
    root = _compose(text)
    value = None if root is None else _construct(root)
    return () if value is None else tuple(value_leaves(value, ()))


def read(text: str, path: SettingPath) -> Any:
    """Return the value at a path, or MISSING."""
    node = _find_node(_compose(text), path)
    return MISSING if node is None else _construct(node)


def read_raw(text: str, path: SettingPath) -> str | None:
    """Return a value as it stands there, None if it does not; an element with its dash.

    An element that does not stand in lines of its own is written anew.
    """
    node = _find_node(_root(text), path)
    if node is None:
        return None
    start, end = int(node.start_mark.index), _end(text, node)
    if len(path) == 1:
        return text[start:end]
    line = text.rfind("\n", 0, start) + 1
    margin, dash, _ = text[line:start].partition("- ")
    if margin.strip() or not dash:
        return write_value(read(text, path))
    lines = text[line:end].rstrip().split("\n")
    return "".join(f"{one.removeprefix(margin)}\n" for one in lines)


def write_value(value: SettingValue) -> str:
    """Write a value as JSON, which is YAML too; a mapping as an element of a list."""
    if not isinstance(value, dict):
        return orjson.dumps(value).decode()
    lines = [f"{name}: {orjson.dumps(text).decode()}\n" for name, text in value.items()]
    return "- " + "  ".join(lines)


def ways_to_put(text: str, path: SettingPath, raw: str) -> Iterator[str]:
    """Give the text with a value at the top, or an element of a list at the top.

    Raises:
        ValueError: a name stands there twice, or it is written in one line.
    """
    root = _root(text)
    found = _child(root, path[0])
    if len(path) == 1 and found is not None:
        yield splice(text, [_replace(text, found, raw)])
    elif len(path) == 1:
        yield _append(text, root, f"{path[0]}: {raw}\n")
    elif not raw.startswith("- "):
        raise ValueError("an element of a list must be a mapping")
    elif found is None:
        yield _append(text, root, f"{path[0]}:\n{_indent(raw, 2)}")
    elif _child(found, path[1]) is not None:
        cut = _cut_element(text, root, path)[-1]
        new = _indent(raw, found.start_mark.column)
        yield splice(text, [Edit(cut.start, cut.end, new)])
    else:
        yield splice(text, _append_element(text, root, path[0], raw))


def without_path(text: str, path: SettingPath) -> str:
    """Take a value out, with its lines."""
    root = _root(text)
    if len(path) > 1:
        return splice(text, _cut_element(text, root, path))
    cuts = [
        _cut_lines(text, key.start_mark.index, _end(text, value))
        for key, value in (root.value if isinstance(root, MappingNode) else ())
        if key.value == path[0]
    ]
    return splice(text, cuts[:1])


def _compose(text: str) -> Node | None:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _unreadable(error) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if root is not None and _count(root, {}, 0) > _MOST_NODES:
        raise ValueError("it has too many values")
    return root


_root = lru_cache(maxsize=4)(_compose)  # its nodes must stay as they are


def _construct(node: Node) -> Any:
    """Return the value of a node, which may be changed by this."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except yaml.YAMLError as error:
        raise _unreadable(error) from None


def _unreadable(error: yaml.YAMLError) -> ValueError:
    """Return an error without the text around it, in which keys may stand."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    return ValueError(f"{where}{getattr(error, 'problem', None) or 'it is no YAML'}")


def _count(node: Node, known: dict[int, int], depth: int) -> int:
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if id(node) not in known:
        parts = node.value if isinstance(node, MappingNode | SequenceNode) else ()
        nodes = [
            n for part in parts for n in (part if isinstance(part, tuple) else [part])
        ]
        known[id(node)] = 1 + sum(_count(n, known, depth + 1) for n in nodes)
    return known[id(node)]


def _find_node(node: Node | None, path: SettingPath) -> Node | None:
    for name in path:
        node = _child(node, name)
    return node


def _child(node: Node | None, name: str) -> Node | None:
    same: list[Node] = []
    if isinstance(node, MappingNode):
        same = [value for key, value in node.value if key.value == name]
    elif isinstance(node, SequenceNode):
        wanted = name.partition("=")[2]
        names = [(item, _child(item, "name")) for item in node.value]
        same = [i for i, n in names if isinstance(n, ScalarNode) and n.value == wanted]
    if len(same) > 1:
        raise ValueError(f"{name} stands there twice")
    return same[0] if same else None


def _end(text: str, node: Node) -> int:
    """Return where a value ends, without the comments and empty lines behind it."""
    if isinstance(node, ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    children = [c[1] if isinstance(c, tuple) else c for c in node.value]
    starts = [int(child.start_mark.index) for child in children]
    is_newest = starts[-1] == max(node.start_mark.index, *starts)
    if is_newest and starts.count(starts[-1]) == 1:
        return _end(text, children[-1])
    lines = text[: node.end_mark.index].rstrip().split("\n")  # an alias is the last
    while lines[-1].lstrip().startswith("#"):
        lines = "\n".join(lines[:-1]).rstrip().split("\n")
    return len("\n".join(lines))


def _replace(text: str, node: Node, raw: str) -> Edit:
    """Replace a value; a block of text has the end of its line in it."""
    start, end = int(node.start_mark.index), _end(text, node)
    if not raw:
        return Edit(len(text[:start].rstrip(" ")), end, "")
    if text[start:end].endswith("\n") and not raw.endswith("\n"):
        raw += "\n"
    elif raw.endswith("\n") and text[end : end + 1] == "\n":
        raw = raw[:-1]
    return Edit(start, end, raw if text[start - 1 : start].isspace() else f" {raw}")


def _append(text: str, root: Node | None, new: str) -> str:
    if root is not None and not isinstance(root, MappingNode):
        raise ValueError("the whole file is no mapping")
    if root is not None and root.flow_style:
        raise ValueError("the whole file is written in braces")
    gap = "\n" if text and not text.endswith("\n") else ""
    return text + gap + _indent(new, root.start_mark.column if root else 0)


def _indent(lines: str, width: int) -> str:
    return re.sub(r"(?m)^(?=.)", " " * width, lines)


def _append_element(text: str, root: Node | None, name: str, raw: str) -> list[Edit]:
    """Append an element to a list of lines, or to one that is empty."""
    found = _child(root, name)
    if found is None:
        return []
    if isinstance(found, SequenceNode) and found.value and not found.flow_style:
        lines = _indent(raw, found.start_mark.column)
        return [_insert_lines(text, _end(text, found), lines)]
    if found.value and found.value not in ("null", "~"):
        raise ValueError(f"{name} is written in one line, not as a list of lines")
    at, start = _colon(text, root, name), int(found.start_mark.index)
    blanks = start - len(text[at:start].rstrip(" ")) - at
    cut = Edit(start - blanks, _end(text, found), "")
    return [cut, _insert_lines(text, cut.end, _indent(raw, 2))]


def _insert_lines(text: str, at: int, new: str) -> Edit:
    if text[at - 1 : at] == "\n":  # a block of text ends with its line
        return Edit(at, at, new)
    end = text.find("\n", at)
    if end < 0:
        return Edit(len(text), len(text), f"\n{new}")
    return Edit(end + 1, end + 1, new)


def _cut_element(text: str, root: Node | None, path: SettingPath) -> list[Edit]:
    found = _child(root, path[0])
    old = _child(found, path[1])
    if found is None or old is None:
        return []
    if found.flow_style:
        raise ValueError(f"{path[0]} is written in one line, not as a list of lines")
    dash = text.rindex("-", 0, old.start_mark.index)
    cut = _cut_lines(text, dash, _end(text, old))
    if len(found.value) > 1:
        return [cut]
    at = _colon(text, root, path[0])
    return [Edit(at, at, " []"), cut]


def _colon(text: str, root: Node | None, name: str) -> int:
    """Return the place behind the colon of a name at the top."""
    keys = [key for key, _ in root.value if key.value == name] if root else []
    return text.index(":", keys[0].end_mark.index) + 1


def _cut_lines(text: str, start: int, end: int) -> Edit:
    line = text.rfind("\n", 0, start) + 1
    stop = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1
    return Edit(line, stop or len(text), "")
