"""A tool's JSON Schema in a form that all strict vendors accept.

One tool with a schema that a vendor rejects fails every request of an agent. So what
any of them rejects is rewritten for all: OpenAI and Azure require one object at the top
and items in arrays, Anthropic strict draft 2020-12, Moonshot no type beside anyOf and
no keywords beside a reference that repeats them, Groq properties where some are
required. What the new schema cannot express goes into the description. Schemas that all
accept stay unchanged. The client validates calls against the original.
"""

import re
from functools import lru_cache
from typing import Any

from byok.core.chat import Json
from byok.core.wire.json_body import parse_json
from byok.dialects.schemas.gemini import narrow_schema
from byok.dialects.schemas.parts import (
    distinct,
    is_pattern,
    is_schema,
    kind_of,
    kinds_of,
    merge,
    note,
    shape,
    target_of,
    unite,
    with_notes,
)

_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SINGLE = (
    *("additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("contains", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TOP = ("enum", "const", "not")
_ANYTHING: Json = {}
_SHARED = re.compile(r"#/(?:\$defs|definitions)/([^/]+)\Z")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_MOST_IN_PLACE = 2000  # schemas behind references, which may double at every step
_DEEPEST = 100
_KEPT = 1000  # schemas; an agent sends the same ones at every step


@lru_cache(maxsize=_KEPT)
def write_schema(raw: bytes, *, narrow: bool, plain_keys: bool) -> Json:
    """Return the schema to send for one in JSON. It is cached: do not modify it.

    `narrow` and `plain_keys` are quirks of the vendor.
    """
    schema = _Cleaning(parse_json(raw)).top()
    if plain_keys:
        _note_odd_keys(schema)
    return narrow_schema(schema) if narrow else schema


class _Cleaning:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _MOST_IN_PLACE
        self._depth = 0

    def top(self) -> dict[str, Any]:
        """Rewrite the whole schema to one object without anyOf or oneOf at the top."""
        node = dict(self._root)
        if isinstance(node.get("$ref"), str):
            node = self._in_place(node, ())[0]
        notes = unite(node, lambda part: self._in_place(dict(part), ())[0])
        notes += [note(key, node.pop(key)) for key in _TOP if key in node]
        properties = node.get("properties")
        node["properties"] = properties if isinstance(properties, dict) else {}
        node["type"] = "object"
        shared = node.pop("definitions", None)
        if isinstance(shared, dict):
            merge(node, {"$defs": shared})
        return with_notes(self._node(node, ()), notes)

    def _node(self, schema: Any, inside: tuple[str, ...]) -> dict[str, Any]:
        """Rewrite one schema; `inside` are the references that contain it."""
        if self._depth >= _DEEPEST or not isinstance(schema, dict):
            return {"not": {}} if schema is False else {}
        self._depth += 1
        self._left -= bool(inside)
        try:
            return self._rewritten(schema, inside)
        finally:
            self._depth -= 1

    def _rewritten(self, schema: Json, inside: tuple[str, ...]) -> dict[str, Any]:
        node, notes = dict(schema), list[str]()
        if "$ref" in node:
            node, inside = self._reference(node, inside, notes)
        shape(node)
        notes += _values(node)
        if "pattern" in node and not is_pattern(node["pattern"]):
            notes.append(note("pattern", node.pop("pattern")))
        _require_where_draft_3_did(node)
        self._children(node, inside)
        notes += _items(node)
        _require_what_is_there(node)
        _type_in_choices(node)
        return with_notes(node, notes)

    def _reference(
        self, node: dict[str, Any], inside: tuple[str, ...], notes: list[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Keep a reference to a shared schema; replace others by what they refer to."""
        ref = node["$ref"] if isinstance(node["$ref"], str) else ""
        shared, target = _SHARED.match(ref), target_of(ref, self._root)
        if target is None or (not shared and (ref in inside or self._left <= 0)):
            del node["$ref"]
            notes += [note("as", ref.rpartition("/")[2])] if ref else []
            return node, inside
        if not shared:
            return self._in_place(node, inside)
        said_twice = node.keys() & target.keys()
        if said_twice and ref not in inside and self._left > 0:
            return self._in_place(node, inside)
        node["$ref"] = f"#/$defs/{shared[1]}"
        return {k: v for k, v in node.items() if k not in said_twice}, inside

    def _in_place(
        self, node: dict[str, Any], inside: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Merge what a reference refers to with the keywords beside it."""
        while isinstance(ref := node.get("$ref"), str):
            target = target_of(ref, self._root)
            self._left -= 1
            del node["$ref"]
            if ref in inside or target is None or self._left < 0:
                break
            inside = (*inside, ref)
            merge(node, target)
        return node, inside

    def _children(self, node: dict[str, Any], inside: tuple[str, ...]) -> None:
        for key in _MAPS:
            if key in node:
                node[key] = {
                    name: self._node(child, inside)
                    for name, child in node[key].items()
                    if not (key == "properties" and child is False)
                    and not (key == "patternProperties" and not is_pattern(name))
                }
        for key in _SINGLE:
            if isinstance(node.get(key), dict):
                node[key] = self._node(node[key], inside)
        for key in _LISTS:
            if key in node:
                found = [self._node(c, inside) for c in node[key] if is_schema(c)]
                node[key] = found
                if not found:
                    del node[key]
        if isinstance(items := node.get("items"), list):
            node["items"] = [self._node(c, inside) for c in items if is_schema(c)]
        elif isinstance(items, dict):
            node["items"] = self._node(items, inside)


def _values(node: dict[str, Any]) -> list[str]:
    """Keep the values of an enum that have the type beside it."""
    kinds = set(kinds_of(node))
    if "number" in kinds:
        kinds.add("integer")
    if "const" in node and kinds and kind_of(node["const"]) not in kinds:
        return [note("one of", [node.pop("const")])]
    values = node.get("enum")
    if values is None:
        return []
    fit = distinct(v for v in values if not kinds or kind_of(v) in kinds)
    if not fit:
        return [note("one of", node.pop("enum"))]
    node["enum"] = fit
    return []


def _require_where_draft_3_did(node: dict[str, Any]) -> None:
    """Move `required: true` from a property to its object."""
    properties = node.get("properties") or {}
    wanted = [
        name
        for name, child in properties.items()
        if isinstance(child, dict) and child.get("required") is True
    ]
    if wanted:
        node["required"] = list(dict.fromkeys((*node.get("required", ()), *wanted)))


def _items(node: dict[str, Any]) -> list[str]:
    """Give an array one schema for all its items."""
    notes: list[str] = []
    items = node.get("items")
    if isinstance(items, list):
        node.pop("additionalItems", None)
        kinds = distinct(items)
        node["items"] = (
            {"anyOf": kinds} if len(kinds) > 1 else kinds[0] if kinds else {}
        )
        notes = [note("items in order", items)] if len(kinds) > 1 else []
    elif items is False:
        notes = ["no further items"]
    if isinstance(items, bool) or (items is None and "array" in kinds_of(node)):
        node["items"] = {}
    return notes


def _require_what_is_there(node: dict[str, Any]) -> None:
    """Add required keys to the properties; drop them where none are allowed."""
    names = node.get("required")
    if not names:
        return
    properties = node.get("properties", {})
    missing = dict.fromkeys((n for n in names if n not in properties), _ANYTHING)
    if missing:
        if node.get("additionalProperties") is False:
            node["required"] = [name for name in names if name in properties]
        else:
            properties = {**properties, **missing}
    node["properties"] = properties


def _type_in_choices(node: dict[str, Any]) -> None:
    """Move a type beside anyOf or oneOf into each of their schemas."""
    keys = [key for key in ("anyOf", "oneOf") if key in node]
    if not keys or "type" not in node:
        return
    kind = node.pop("type")
    for key in keys:
        node[key] = [
            choice if _SAYS_TYPE & choice.keys() else {"type": kind, **choice}
            for choice in node[key]
        ]
        for choice in node[key]:
            choice |= _with_items(choice)


_SAYS_TYPE = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not"}


def _with_items(node: Json) -> Json:
    return {"items": {}} if "array" in kinds_of(node) and "items" not in node else {}


def _note_odd_keys(schema: dict[str, Any]) -> None:
    """Move keys that Anthropic refuses into the description; calls may have them."""
    properties = schema["properties"]
    odd = {key: properties[key] for key in properties if not _PLAIN_KEY.match(key)}
    if not odd:
        return
    schema["properties"] = {k: v for k, v in properties.items() if k not in odd}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in odd]
    if schema.get("additionalProperties") is False:
        del schema["additionalProperties"]
    with_notes(schema, [note("further keys", odd)])
