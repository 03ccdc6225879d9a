"""Tools' JSON Schemas, rewritten so that all vendors, or Gemini, accept them."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from byok.core.chat import Json
from byok.core.wire.json_body import parse_json, write_json
from byok.core.wire.json_fields import objects_in

_LONGEST_NOTE = 300
_ANYTHING: Json = {}


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return JSON values without duplicates."""
    return list({write_json(value): value for value in values}.values())


def note(name: str, value: Any) -> str:
    """Describe in words what the schema cannot express."""
    text = write_json(value).decode("utf-8", "replace")
    return f"{name}: {text[:_LONGEST_NOTE]}"


def with_notes(node: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    """Append notes to the description of a schema."""
    if told := "; ".join(notes):
        said = node.get("description")
        node["description"] = f"{said} ({told})" if said else told
    return node


def merge(node: dict[str, Any], part: Json) -> None:
    """Merge one schema of an allOf into another; what allows anything gives way."""
    for key, value in part.items():
        old = node.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            said = {k: v for k, v in old.items() if k not in value or v != _ANYTHING}
            node[key] = {**value, **said}
        elif isinstance(old, list) and isinstance(value, list) and key == "required":
            node[key] = distinct([*old, *value])
        else:
            node.setdefault(key, value)


def target_of(ref: str, root: Json) -> Json | None:
    """Return the target of a reference into the same document, or None."""
    found: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if ref.startswith("#/") and isinstance(found, Mapping) else None


# The values that JSON Schema keywords may have, as a table; others are dropped.
#
# OpenAI, Azure, Anthropic and Mistral validate a tool's schema against the metaschema
# of draft 2020-12, and refuse the whole request because of a `required: true` of draft
# 3.


KINDS = ("string", "number", "integer", "boolean", "array", "object", "null")
# What authors write for a type.
_ALIASES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
    "none": "null",
}
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def _is_a(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def is_schema(value: Any) -> bool:
    """Tell whether a value is a schema: an object or a boolean."""
    return isinstance(value, Mapping | bool)


def _is_dependent(value: Any) -> bool:
    """Tell whether a value maps keys to the keys that they require."""
    return isinstance(value, Mapping) and all(
        isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
        and len(set(keys)) == len(keys)
        for keys in value.values()
    )


_WANTED: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_a(str), "title description format pattern $ref $comment contentEncoding"),
    (_is_a(str), "contentMediaType $dynamicRef"),
    (_is_count, "minLength maxLength minItems maxItems minProperties maxProperties"),
    (_is_count, "minContains maxContains"),
    (_is_number, "minimum maximum exclusiveMinimum exclusiveMaximum"),
    (lambda value: _is_number(value) and value > 0, "multipleOf"),
    (_is_a(bool), "uniqueItems deprecated readOnly writeOnly"),
    (_is_a(list), "required examples"),
    (lambda v: isinstance(v, list) and v != [], "enum anyOf oneOf allOf prefixItems"),
    (_is_a(Mapping), "properties patternProperties dependentSchemas $defs definitions"),
    (is_schema, "additionalProperties propertyNames not if then else contains"),
    (is_schema, "unevaluatedProperties unevaluatedItems contentSchema"),
    (_is_a(Mapping, bool, list), "items"),
    (lambda value: isinstance(value, str) and "#" not in value, "$id"),
    (_is_dependent, "dependencies dependentRequired"),
    # Of other drafts, or for whole documents: nothing that a model needs.
    (_is_a(), "$schema $anchor $dynamicAnchor $vocabulary $recursiveAnchor"),
    (_is_a(), "$recursiveRef"),
)
_MAY_BE = {key: check for check, keys in _WANTED for key in keys.split()}


def shape(node: dict[str, Any]) -> None:
    """Drop or rewrite what no current metaschema allows in one schema."""
    for key, bound in _BOUNDS:
        if isinstance(node.get(key), bool) and node.pop(key) and bound in node:
            node[key] = node.pop(bound)  # a flag beside the bound, in draft 4
    for key in [k for k in node if k in _MAY_BE and not _MAY_BE[k](node[k])]:
        del node[key]
    if "required" in node:
        names = [name for name in node["required"] if isinstance(name, str)]
        node["required"] = list(dict.fromkeys(names))
    if "type" in node:
        _spell_type(node)


def kinds_of(node: Mapping[str, Any]) -> list[str]:
    """Return the types that a shaped schema names."""
    kinds = node.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def kind_of(value: Any) -> str:
    """Return the type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value == int(value) else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def is_pattern(text: str) -> bool:
    """Tell whether a pattern is valid in Python, which the vendors' checks use."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _spell_type(node: dict[str, Any]) -> None:
    given = node["type"] or "any"
    kinds = [
        _known_kind(kind) for kind in (given if isinstance(given, list) else [given])
    ]
    left = list(dict.fromkeys(kind for kind in kinds if kind))
    if not left or "" in kinds:
        del node["type"]  # one that is unknown may be anything
    elif len(left) == 1:
        node["type"] = left[0]
    else:
        node["type"] = left


def _known_kind(kind: Any) -> str:
    if kind is None:
        return "null"
    word = kind.lower() if isinstance(kind, str) else ""
    word = _ALIASES.get(word, word)
    return word if word in KINDS else ""


# Unions at the top of a tool's schema, merged to one object with all their keys.


_MOST_ROUNDS = 20  # of parts that have parts
_SAID = {"anyOf": "at least", "oneOf": "exactly"}


def unite(node: dict[str, Any], resolve: Callable[[Json], Json]) -> list[str]:
    """Merge allOf, anyOf and oneOf of an object into it; return notes on them.

    A key may have the values that any of the schemas allows, and is required if all of
    them require it. `resolve` replaces references by what they refer to.
    """
    notes: list[str] = []
    for _ in range(_MOST_ROUNDS):
        parts = objects_in(node.pop("allOf", None))
        for part in parts:
            merge(node, resolve(part))
        for name in _SAID:
            if choices := [resolve(c) for c in objects_in(node.pop(name, None))]:
                notes.append(_choice(name, choices))
                _unite(node, choices)
        if not parts and not any(name in node for name in ("allOf", *_SAID)):
            break
    else:
        for name in ("allOf", *_SAID):
            node.pop(name, None)
    return notes


def _unite(node: dict[str, Any], choices: list[Json]) -> None:
    own = node.get("properties")
    own = own if isinstance(own, dict) else {}
    found: dict[str, list[Any]] = {}
    for choice in choices:
        for key, schema in _properties(choice).items():
            if key not in own:
                found.setdefault(key, []).append(schema)
    distinct_ones = {key: distinct(variants) for key, variants in found.items()}
    added = {
        key: schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        for key, schemas in distinct_ones.items()
    }
    if added:
        node["properties"] = {**own, **added}
    common = set.intersection(*(set(_required_names(choice)) for choice in choices))
    common_names = [name for name in _required_names(choices[0]) if name in common]
    merge(node, {"required": common_names} if common else {})
    for choice in choices:  # parts of the choices: their keys count as well
        merge(node, {key: choice[key] for key in ("allOf",) if key in choice})


def _choice(name: str, choices: list[Json]) -> str:
    sets = [", ".join(_required_names(choice)) for choice in choices]
    if all(sets):
        return f"{_SAID[name]} one of these sets of keys: {'; '.join(sets)}"
    return note(name, choices)


def _required_names(schema: Json) -> list[str]:
    names = schema.get("required")
    return [n for n in names if isinstance(n, str)] if isinstance(names, list) else []


def _properties(schema: Json) -> Json:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


# A schema that all vendors accept in the subset that Gemini accepts.
#
# Gemini answers 400 to keywords that its own Schema does not have. References are
# replaced by what they refer to; `const`, `oneOf`, lists of types and bounds of
# integers are expressed with other keywords. All other constraints go into the
# description.


_GEMINI_KEYS = frozenset(
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
_GEMINI_DEEPEST = 60


class _Narrowing:
    """Rewrites a schema without changing its meaning, as far as that is possible."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _MOST_NODES  # references put in place may grow without end
        self._depth = 0

    def node(self, schema: Any, inside: tuple[str, ...] = ()) -> dict[str, Any]:
        """Rewrite one schema; `inside` are the references that contain it."""
        self._left -= 1
        fits = self._left >= 0 and self._depth < _GEMINI_DEEPEST
        if not isinstance(schema, Mapping) or not fits:
            return {}
        self._depth += 1
        try:
            return self._rewritten(schema, inside)
        finally:
            self._depth -= 1

    def _rewritten(self, schema: Json, inside: tuple[str, ...]) -> dict[str, Any]:
        node, inside = self._resolve(dict(schema), inside)
        for part in objects_in(node.pop("allOf", None)):
            part, inside = self._resolve(dict(part), inside)
            merge(node, part)
        _unions(node)
        if "anyOf" in node:
            return self._branches(node, inside)
        notes = _respell(node)
        out = {key: value for key, value in node.items() if key in _GEMINI_KEYS}
        notes += [
            note(key, value)
            for key, value in node.items()
            if key not in _GEMINI_KEYS | _NOTHING
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
        if properties is not None:
            out["properties"] = {k: self.node(v, inside) for k, v in properties.items()}
            if there := [name for name in required or () if name in properties]:
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


def _unions(node: dict[str, Any]) -> None:
    """Express unions as anyOf, and null as nullable."""
    for name in ("anyOf", "oneOf"):
        if choices := node.pop(name, None):
            _choose(node, choices)
    if isinstance(kinds := node.get("type"), list):
        del node["type"]
        _choose(node, [{"type": kind} for kind in kinds])


def _choose(node: dict[str, Any], choices: Sequence[Json]) -> None:
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
    if "enum" in node:
        notes += _enum(node, node["enum"])
    if kind := node.pop("format", None):
        if kind in _FORMATS:
            node["format"] = kind
        else:
            notes.append(note("format", kind))
    for key, bound, step in (
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ):
        is_whole = node.get("type") == "integer" and isinstance(node.get(key), int)
        if is_whole and bound not in node:
            node[bound] = node.pop(key) + step
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


# A tool's JSON Schema in a form that all strict vendors accept.
#
# One tool with a schema that a vendor rejects fails every request of an agent. So what
# any of them rejects is rewritten for all: OpenAI and Azure require one object at the
# top and items in arrays, Anthropic strict draft 2020-12, Moonshot no type beside anyOf
# and no keywords beside a reference that repeats them, Groq properties where some are
# required. What the new schema cannot express goes into the description. Schemas that
# all accept stay unchanged. The client validates calls against the original.


_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SINGLE = (
    *("additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("contains", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_TOP = ("enum", "const", "not")
# How values are constrained, which nothing but a grammar needs.
_CONSTRAINTS = frozenset(
    (
        *("pattern", "format", "minLength", "maxLength", "minItems", "maxItems"),
        *("uniqueItems", "minProperties", "maxProperties", "patternProperties"),
        *("propertyNames", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf"),
    )
)
_ANY_TYPE = ("string", "number", "boolean", "object", "array", "null")
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
    return _Narrowing(schema).node(schema) if narrow else schema


def write_parameters(
    parameters: Json, *, narrow: bool = False, plain_keys: bool = False
) -> Json:
    """Return the schema to send for the parameters of a tool: do not modify it."""
    raw = write_json({**parameters, "type": "object"})
    return write_schema(raw, narrow=narrow, plain_keys=plain_keys)


def without_constraints(schema: Any) -> Any:
    """Return a schema that says types, keys and values to choose from, not more.

    llama.cpp and others write a grammar for it, and not for all constraints. Where no
    type is said, all are.
    """
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if k not in _CONSTRAINTS}
    node = change_inside(kept, without_constraints)
    if not (_SAYS_TYPE | {"properties", "items"}) & node.keys():
        node["type"] = [*_ANY_TYPE]
    return node


def change_inside(schema: Json, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a schema with changed schemas inside of it."""
    node = dict(schema)
    for key in _MAPS:
        if isinstance(children := node.get(key), dict):
            node[key] = {name: change(child) for name, child in children.items()}
    for key in (*_SINGLE, "items"):
        if isinstance(child := node.get(key), dict):
            node[key] = change(child)
    for key in (*_LISTS, "items"):
        if isinstance(children := node.get(key), list):
            node[key] = [*map(change, children)]
    return node


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
        _drop_no_schemas(node)
        node = change_inside(node, lambda child: self._node(child, inside))
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


def _drop_no_schemas(node: dict[str, Any]) -> None:
    """Drop what cannot be a schema, or allows nothing, from the places of schemas."""
    for key in (*_LISTS, "items"):
        if isinstance(children := node.get(key), list):
            node[key] = [*filter(is_schema, children)]
            if not node[key] and key != "items":
                del node[key]
    if "properties" in node:
        children = node["properties"].items()
        node["properties"] = {k: child for k, child in children if child is not False}
    if "patternProperties" in node:
        children = node["patternProperties"].items()
        node["patternProperties"] = {k: c for k, c in children if is_pattern(k)}


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
            if "array" in kinds_of(choice):
                choice.setdefault("items", {})


_SAYS_TYPE = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not"}


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
