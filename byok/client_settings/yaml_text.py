"""Change single values of YAML, and nothing else in the text.

PyYAML tells where each value stands. Libraries that write YAML with its comments write
the whole text anew, and change blanks, quotes and long lines.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from byok.client_settings.setting import (
    MAX_DEPTH,
    MISSING,
    Leaf,
    MissingValue,
    SettingPath,
    SettingValue,
    value_leaves,
    write_path,
)

_MOST_NODES = 200_000  # with each alias counted as what it stands for


def leaves(text: str) -> Iterator[Leaf]:
    """Give all values without members.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    root = _compose(text)
    value = None if root is None else _construct(root)
    if value is not None:
        yield from value_leaves(value, ())


def read(text: str, path: SettingPath) -> Any | MissingValue:
    """Return the value at a path, or MISSING."""
    node = _compose(text)
    for name in path:
        node = _child(node, name)
    return MISSING if node is None else _construct(node)


def put(text: str, path: SettingPath, value: SettingValue) -> str:
    """Set a value at the top, or an element of a list at the top.

    Raises:
        ValueError: a name stands there twice, or it is written in one line.
    """
    root = _root(text)
    found = _child(root, path[0])
    if len(path) == 1:
        raw = orjson.dumps(value).decode()
        return _put_line(text, root, path[0], found, raw)
    if not isinstance(value, dict):
        raise ValueError("an element of a list must be a mapping")
    return _put_element(text, root, path, found, value)


def restore(text: str, path: SettingPath, base: str) -> str:
    """Set the value that another text has at this path, as it stands there."""
    node: Node | None = _root(base)
    for name in path:
        node = _child(node, name)
    if node is None:
        raise ValueError(f"{write_path(path)} is not in the former text")
    root = _root(text)
    if len(path) == 1:
        return _put_line(text, root, path[0], _child(root, path[0]), _raw(base, node))
    value = read(base, path)
    return _put_element(text, root, path, _child(root, path[0]), value)


def drop(text: str, path: SettingPath) -> str:
    """Take a value out, with its lines."""
    root = _root(text)
    if len(path) > 1:
        return _drop_element(text, root, path)
    if isinstance(root, MappingNode):
        for key, value in root.value:
            if key.value == path[0]:
                return _cut_lines(text, key.start_mark.index, _end(text, value))
    return text


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


def _raw(text: str, node: Node) -> str:
    start = int(node.start_mark.index)
    return text[start : _end(text, node)]


def _put_line(
    text: str, root: Node | None, name: str, found: Node | None, raw: str
) -> str:
    if found is not None:
        return _replace(text, int(found.start_mark.index), _end(text, found), raw)
    return _append(text, root, f"{name}: {raw}\n")


def _replace(text: str, start: int, end: int, raw: str) -> str:
    """Replace a value; a block of text has the end of its line in it."""
    if not raw:
        return text[:start].rstrip(" ") + text[end:]
    if text[start:end].endswith("\n") and not raw.endswith("\n"):
        raw += "\n"
    elif raw.endswith("\n") and text[end : end + 1] == "\n":
        raw = raw[:-1]
    gap = "" if text[start - 1 : start].isspace() else " "
    return text[:start] + gap + raw + text[end:]


def _append(text: str, root: Node | None, new: str) -> str:
    """Append lines to the mapping of the whole file."""
    if root is not None and not isinstance(root, MappingNode):
        raise ValueError("the whole file is no mapping")
    if root is not None and root.flow_style:
        raise ValueError("the whole file is written in braces")
    indent = " " * root.start_mark.column if root else ""
    gap = "\n" if text and not text.endswith("\n") else ""
    return text + gap + "".join(indent + line for line in new.splitlines(True))


def _put_element(
    text: str, root: Node | None, path: SettingPath, found: Node | None, value: Any
) -> str:
    old = _child(found, path[1])
    if found is None:
        return _append(text, root, f"{path[0]}:\n{_element(value, '  ')}")
    if isinstance(found, SequenceNode) and found.value and not found.flow_style:
        if old is not None:
            text = _drop_element(text, root, path)
            return put(text, path, value)
        indent = " " * found.start_mark.column
        return _insert_lines(text, _end(text, found), _element(value, indent))
    if found.value and found.value not in ("null", "~"):
        raise ValueError(f"{path[0]} is written in one line, not as a list of lines")
    at = _colon(text, root, path[0])
    text = (
        text[:at]
        + text[at : found.start_mark.index].rstrip(" ")
        + text[_end(text, found) :]
    )
    return _insert_lines(text, at, _element(value, "  "))


def _element(value: dict[str, str], indent: str) -> str:
    lines = [f"{name}: {orjson.dumps(text).decode()}" for name, text in value.items()]
    return "".join(
        f"{indent}{'  ' if at else '- '}{line}\n" for at, line in enumerate(lines)
    )


def _insert_lines(text: str, at: int, new: str) -> str:
    """Insert lines below the line of a place."""
    if text[at - 1 : at] == "\n":  # a block of text ends with its line
        return text[:at] + new + text[at:]
    end = text.find("\n", at)
    if end < 0:
        return f"{text}\n{new}"
    return text[: end + 1] + new + text[end + 1 :]


def _drop_element(text: str, root: Node | None, path: SettingPath) -> str:
    found = _child(root, path[0])
    old = _child(found, path[1])
    if found is None or old is None:
        return text
    if found.flow_style:
        raise ValueError(f"{path[0]} is written in one line, not as a list of lines")
    dash = text.rindex("-", 0, old.start_mark.index)
    cut = _cut_lines(text, dash, _end(text, old))
    if len(found.value) > 1:
        return cut
    at = _colon(text, root, path[0])
    return f"{cut[:at]} []{cut[at:]}"


def _colon(text: str, root: Node | None, name: str) -> int:
    """Return the place behind the colon of a name at the top."""
    keys = [key for key, _ in root.value if key.value == name] if root else []
    return text.index(":", keys[0].end_mark.index) + 1


def _cut_lines(text: str, start: int, end: int) -> str:
    line = text.rfind("\n", 0, start) + 1
    stop = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1
    return text[:line] + (text[stop:] if stop else "")
