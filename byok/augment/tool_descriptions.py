"""Shortens the descriptions of tools, for models that get lost in long ones."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from byok.augment.first_sentences import shorten
from byok.chat import Json, ToolDefinition
from byok.wire.json_body import write_json

_TOOL, _PARAMETER = 200, 100  # most characters of a description
# Its description is the format of its input: without it no call would be right.
_WHOLE = frozenset({"apply_patch"})
_DEEPEST = 24  # levels of a schema; deeper ones stay as they are
_KEPT = 500  # tools; an agent sends the same ones at every step
_LARGEST = 16 * 1024  # bytes of a definition that is kept
_ADORNMENT = frozenset({"$comment", "examples", "title"})
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SINGLE = (
    *("items", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("contains", "additionalItems", "unevaluatedProperties", "unevaluatedItems"),
    "contentSchema",
)
_LISTS = ("items", "anyOf", "oneOf", "allOf", "prefixItems")


def shorten_descriptions(
    tools: Sequence[ToolDefinition],
) -> tuple[tuple[ToolDefinition, ...], str]:
    """Return the tools with shorter descriptions, and what was left out for the log.

    The second is "" if nothing was. Names, types and what is required stay as they are.
    The same tools always give the same result; the given ones are not changed.
    """
    found = [_shorten(tool) for tool in tools]
    count = sum(one.after < one.before for one in found)
    if not count:
        return (*tools,), ""
    before, after = sum(one.before for one in found), sum(one.after for one in found)
    noun = "tool description" if count == 1 else "tool descriptions"
    note = f"{count} {noun} shortened from {before:,} to {after:,} characters"
    return tuple(
        replace(tool, description=one.description, parameters=one.parameters)
        for tool, one in zip(tools, found, strict=True)
    ), note


class _Short(NamedTuple):
    """Description and schema of a tool, and the characters of both, before and after.

    The schema is cached: do not modify it.
    """

    description: str
    parameters: Json
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class _Definition:
    """Description and schema of a tool; those with equal JSON are equal."""

    description: str
    raw: bytes
    parameters: Json = field(compare=False)


def _shorten(tool: ToolDefinition) -> _Short:
    raw = write_json(tool.parameters)
    given = _Definition(tool.description, raw, tool.parameters)
    size = len(tool.description) + len(raw)
    if tool.name in _WHOLE:
        return _Short(tool.description, tool.parameters, size, size)
    return _shorten_again(given) if size <= _LARGEST else _shorten_parts(given)


def _shorten_parts(given: _Definition) -> _Short:
    description = shorten(given.description, _TOOL)
    parameters = _shorten_schema(given.parameters, _DEEPEST)
    before = len(given.description) + len(given.raw.decode())
    after = len(description) + len(write_json(parameters).decode())
    return _Short(description, parameters, before, after)


_shorten_again = lru_cache(maxsize=_KEPT)(_shorten_parts)


def _shorten_schema(schema: Json, levels: int) -> dict[str, Any]:
    """Return a copy of a schema with shorter descriptions, sharing what stays."""
    node = {key: value for key, value in schema.items() if key not in _ADORNMENT}
    said = node.get("description")
    if isinstance(said, str):
        node["description"] = shorten(said, _PARAMETER)
    if not levels:
        return node

    def inner(value: Any) -> Any:
        return _shorten_schema(value, levels - 1) if isinstance(value, dict) else value

    for key in _MAPS:
        if isinstance(value := node.get(key), dict):
            node[key] = {name: inner(child) for name, child in value.items()}
    for key in _SINGLE:
        if key in node:
            node[key] = inner(node[key])
    for key in _LISTS:
        if isinstance(value := node.get(key), list):
            node[key] = [inner(child) for child in value]
    return node
