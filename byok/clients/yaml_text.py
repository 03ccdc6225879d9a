"""Find and place values in YAML: top-level values, and elements of top-level lists.

PyYAML gives the offset of each value. Libraries that preserve the comments of YAML
write the whole text anew, and change blanks, quotes and long lines.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from byok.clients.bracketed import Edit, splice
from byok.clients.settings_text import (
    MAX_DEPTH,
    MISSING,
    Leaf,
    SettingPath,
    SettingValue,
    value_leaves,
)

_MAX_NODES = 200_000  # an alias counts as many nodes as its target


@lru_cache(maxsize=4)  # the same text is read before and after a change
def leaves(text: str) -> tuple[Leaf, ...]:
    """Return all values without members.

    Raises:
        ValueError: the text cannot be read, here as in the other functions.
    """
    root = _compose(text)
    value = None if root is None else _construct(root)
    return () if value is None else tuple(value_leaves(value, ()))


def read(text: str, path: SettingPath) -> Any:
    """Return the value at a path, or MISSING."""
    node = _find_node(_compose(text), path)
    return MISSING if node is None else _construct(node)


def read_raw(text: str, path: SettingPath) -> str | None:
    """Return the text of a value, or None; of an element of a list, with its dash.

    An element that has no lines of its own is written anew.
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
    return "".join(f"{each.removeprefix(margin)}\n" for each in lines)


def write_value(value: SettingValue) -> str:
    """Write a value as JSON, which is valid YAML; a mapping as an element of a list."""
    if not isinstance(value, dict):
        return orjson.dumps(value).decode()
    lines = [f"{name}: {orjson.dumps(text).decode()}\n" for name, text in value.items()]
    return "- " + "  ".join(lines)


def ways_to_put(text: str, path: SettingPath, raw: str) -> Iterator[str]:
    """Yield the text with a top-level value, or an element of a top-level list.

    Raises:
        ValueError: the text has a name twice, or the list is written in one line.
    """
    root = _root(text)
    value = _child(root, path[0])
    if len(path) == 1 and value is not None:
        yield splice(text, [_replace(text, value, raw)])
    elif len(path) == 1:
        yield _append(text, root, f"{path[0]}: {raw}\n")
    elif not raw.startswith("- "):
        raise ValueError("an element of a list must be a mapping")
    elif value is None:
        yield _append(text, root, f"{path[0]}:\n{_indent(raw, 2)}")
    elif _child(value, path[1]) is not None:
        cut = _cut_element(text, root, path)[-1]
        new = _indent(raw, value.start_mark.column)
        yield splice(text, [Edit(cut.start, cut.end, new)])
    else:
        yield splice(text, _append_element(text, root, path[0], raw))


def without_path(text: str, path: SettingPath) -> str:
    """Remove a value, with its lines."""
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
    if root is not None and _count(root, {}, 0) > _MAX_NODES:
        raise ValueError("it has too many values")
    return root


_root = lru_cache(maxsize=4)(_compose)  # callers must not change the nodes


def _construct(node: Node) -> Any:
    """Return the value of a node; PyYAML may change the node."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except yaml.YAMLError as error:
        raise _unreadable(error) from None


def _unreadable(error: yaml.YAMLError) -> ValueError:
    """Return an error without the surrounding text, which may contain keys."""
    mark = getattr(error, "problem_mark", None)
    line = f"line {mark.line + 1}: " if mark else ""
    return ValueError(f"{line}{getattr(error, 'problem', None) or 'it is no YAML'}")


def _count(node: Node, counts: dict[int, int], depth: int) -> int:
    """Count the nodes of a tree; `counts` caches those of nodes that aliases share."""
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if id(node) not in counts:
        parts = node.value if isinstance(node, MappingNode | SequenceNode) else ()
        nodes = [
            n for part in parts for n in (part if isinstance(part, tuple) else [part])
        ]
        counts[id(node)] = 1 + sum(_count(n, counts, depth + 1) for n in nodes)
    return counts[id(node)]


def _find_node(node: Node | None, path: SettingPath) -> Node | None:
    for name in path:
        node = _child(node, name)
    return node


def _child(node: Node | None, name: str) -> Node | None:
    """Return the value of a key, or the element of a list that `name=x` selects."""
    matches: list[Node] = []
    if isinstance(node, MappingNode):
        matches = [value for key, value in node.value if key.value == name]
    elif isinstance(node, SequenceNode):
        selected = name.partition("=")[2]
        for item in node.value:
            item_name = _child(item, "name")
            if isinstance(item_name, ScalarNode) and item_name.value == selected:
                matches.append(item)
    if len(matches) > 1:
        raise ValueError(f"{name} stands there twice")
    return matches[0] if matches else None


def _end(text: str, node: Node) -> int:
    """Return the end of a value, without the comments and empty lines behind it."""
    if isinstance(node, ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    children = [c[1] if isinstance(c, tuple) else c for c in node.value]
    starts = [int(child.start_mark.index) for child in children]
    is_last = starts[-1] == max(node.start_mark.index, *starts)
    if is_last and starts.count(starts[-1]) == 1:
        return _end(text, children[-1])
    # The last child is an alias, whose node has the offsets of its anchor.
    lines = text[: node.end_mark.index].rstrip().split("\n")
    while lines[-1].lstrip().startswith("#"):
        lines = "\n".join(lines[:-1]).rstrip().split("\n")
    return len("\n".join(lines))


def _replace(text: str, node: Node, raw: str) -> Edit:
    """Replace a value; the text of a block scalar includes its line end."""
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
    """Append an element to a list that is empty, or written in lines."""
    value = _child(root, name)
    if value is None:
        return []
    if isinstance(value, SequenceNode) and value.value and not value.flow_style:
        lines = _indent(raw, value.start_mark.column)
        return [_insert_lines(text, _end(text, value), lines)]
    if value.value and value.value not in ("null", "~"):
        raise ValueError(f"{name} is written in one line, not as a list of lines")
    colon_end, start = _colon_end(text, root, name), int(value.start_mark.index)
    blanks = start - len(text[colon_end:start].rstrip(" ")) - colon_end
    cut = Edit(start - blanks, _end(text, value), "")
    return [cut, _insert_lines(text, cut.end, _indent(raw, 2))]


def _insert_lines(text: str, offset: int, new: str) -> Edit:
    if text[offset - 1 : offset] == "\n":  # a block scalar includes its line end
        return Edit(offset, offset, new)
    end = text.find("\n", offset)
    if end < 0:
        return Edit(len(text), len(text), f"\n{new}")
    return Edit(end + 1, end + 1, new)


def _cut_element(text: str, root: Node | None, path: SettingPath) -> list[Edit]:
    value = _child(root, path[0])
    element = _child(value, path[1])
    if value is None or element is None:
        return []
    if value.flow_style:
        raise ValueError(f"{path[0]} is written in one line, not as a list of lines")
    dash = text.rindex("-", 0, element.start_mark.index)
    cut = _cut_lines(text, dash, _end(text, element))
    if len(value.value) > 1:
        return [cut]
    colon_end = _colon_end(text, root, path[0])
    return [Edit(colon_end, colon_end, " []"), cut]


def _colon_end(text: str, root: Node | None, name: str) -> int:
    """Return the offset behind the colon of a top-level name."""
    keys = [key for key, _ in root.value if key.value == name] if root else []
    return text.index(":", keys[0].end_mark.index) + 1


def _cut_lines(text: str, start: int, end: int) -> Edit:
    line = text.rfind("\n", 0, start) + 1
    stop = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1
    return Edit(line, stop or len(text), "")
