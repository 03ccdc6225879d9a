"""A tool's JSON Schema in the subset that Gemini accepts.

Gemini answers 400 to keywords that its own Schema does not have. References are
replaced by what they refer to; `const`, `oneOf`, lists of types and bounds of integers
are expressed with other keywords. All other constraints go into the description.
"""

from collections.abc import Mapping
from typing import Any

from byok.core.chat import Json
from byok.dialects.schemas.parts import (
    merge,
    note,
    schemas_in,
    target_of,
    with_notes,
)

_KEPT = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "default"),
        *("properties", "required", "propertyOrdering", "items", "pattern"),
        *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
        *("minProperties", "maxProperties"),
    )
)
_NOTHING = frozenset(  # beside those that are read
    (
        *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref"),
        *("const", "additionalProperties", "unevaluatedProperties"),
        *("deprecated", "readOnly", "writeOnly"),
    )
)
_FORMATS = frozenset(("enum", "date-time", "float", "double", "int32", "int64"))
_MOST_NODES = 2000
_DEEPEST = 60


def narrow_schema(schema: Json) -> dict[str, Any]:
    """Return a schema with the same meaning, as far as the subset can express it."""
    return _Narrowing(schema).node({**schema, "type": "object"}, top=True)


class _Narrowing:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _MOST_NODES  # references put in place may grow without end
        self._depth = 0

    def node(
        self, schema: Any, inside: tuple[str, ...] = (), *, top: bool = False
    ) -> dict[str, Any]:
        """Rewrite one schema; `inside` are the references that contain it."""
        self._left -= 1
        fits = self._left >= 0 and self._depth < _DEEPEST
        if not isinstance(schema, Mapping) or not fits:
            return {}
        self._depth += 1
        try:
            return self._rewritten(schema, inside, top=top)
        finally:
            self._depth -= 1

    def _rewritten(
        self, schema: Json, inside: tuple[str, ...], *, top: bool
    ) -> dict[str, Any]:
        node, inside = self._resolve(dict(schema), inside)
        for part in schemas_in(node.pop("allOf", None)):
            part, inside = self._resolve(dict(part), inside)
            merge(node, part)
        notes = _unions(node, top=top)
        if "anyOf" in node:
            return self._branches(node, inside)
        notes += _respell(node)
        out = {key: value for key, value in node.items() if key in _KEPT}
        notes += [
            note(key, value)
            for key, value in node.items()
            if key not in _KEPT | _NOTHING
        ]
        extra = node.get("additionalProperties")
        if isinstance(extra, Mapping) and extra:
            notes.append(note("values of other keys", extra))
        self._children(out, inside)
        return with_notes(out, notes)

    def _branches(
        self, node: dict[str, Any], inside: tuple[str, ...]
    ) -> dict[str, Any]:
        """Move the keywords beside anyOf into each of its schemas."""
        branches = []
        for branch in node.pop("anyOf"):
            part, within = self._resolve(dict(branch), inside)
            merge(part, node)
            branches.append(self.node(part, within))
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _children(self, out: dict[str, Any], inside: tuple[str, ...]) -> None:
        properties, required = out.pop("properties", None), out.pop("required", None)
        if isinstance(properties, Mapping):
            out["properties"] = {k: self.node(v, inside) for k, v in properties.items()}
            names = required if isinstance(required, list) else []
            if there := [r for r in names if isinstance(r, str) and r in properties]:
                out["required"] = there
        if out.get("type") == "array" or "items" in out:
            items = self.node(out.get("items"), inside)
            out["items"] = items or {"type": "string"}  # there must be some

    def _resolve(
        self, node: dict[str, Any], inside: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        while isinstance(ref := node.get("$ref"), str):
            del node["$ref"]
            self._left -= 1
            target = target_of(ref, self._root) if self._left > 0 else None
            if ref in inside or target is None:
                node.setdefault("type", "object")
                return with_notes(node, [note("as", ref.rpartition("/")[2])]), inside
            inside = (*inside, ref)
            node = {**target, **node}
        return node, inside


def _unions(node: dict[str, Any], *, top: bool) -> list[str]:
    """Express unions as anyOf and null as nullable; the root stays one object."""
    notes: list[str] = []
    for name in ("anyOf", "oneOf"):
        choices = schemas_in(node.pop(name, None))
        if top and choices:
            notes.append(note(name, choices))
        elif choices:
            _choose(node, choices)
    if isinstance(kinds := node.get("type"), list):
        del node["type"]
        _choose(node, [{"type": kind} for kind in kinds])
    return notes


def _choose(node: dict[str, Any], choices: list[Json]) -> None:
    others = [choice for choice in choices if choice.get("type") != "null"]
    if len(others) < len(choices):
        node["nullable"] = True
    if others:
        node.setdefault("anyOf", others)


def _respell(node: dict[str, Any]) -> list[str]:
    """Replace keywords by ones that Gemini has; return notes on the others."""
    notes: list[str] = []
    if "const" in node:
        node["enum"] = [node["const"]]
    if isinstance(values := node.get("enum"), list):
        notes += _enum(node, values)
    if (kind := node.pop("format", None)) and isinstance(kind, str):
        if kind in _FORMATS:
            node["format"] = kind
        else:
            notes.append(note("format", kind))
    for key, bound, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        limit = node.get(key)
        whole = isinstance(limit, int) and not isinstance(limit, bool)
        if node.get("type") == "integer" and whole and bound not in node:
            node[bound] = node.pop(key) + step
    if isinstance(node.get("items"), list):
        notes.append(note("items in order", node.pop("items")))
    return notes


def _enum(node: dict[str, Any], values: list[Any]) -> list[str]:
    """Keep an enum of strings; move others into the description."""
    if None in values:
        node["nullable"] = True
        values = [value for value in values if value is not None]
    if values and all(isinstance(value, str) for value in values):
        node["enum"] = values
        node.setdefault("type", "string")
        return []
    del node["enum"]
    return [note("one of", values)] if values else []
