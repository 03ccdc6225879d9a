"""Tools' JSON Schemas, rewritten so that all vendors, or Gemini, accept them.

One tool with a schema that a vendor rejects fails every request of an agent. So parts
that any vendor rejects are rewritten for all: OpenAI and Azure require one object at
the top and items in arrays. Anthropic requires strict draft 2020-12. Moonshot accepts
no type beside anyOf, and no keywords beside a reference that repeats them. Groq
requires properties where some are required. OpenAI, Azure, Anthropic and Mistral
validate a schema against the metaschema of draft 2020-12, and refuse the whole request
because of a `required: true` of draft 3.

Gemini answers 400 to keywords that its own Schema does not have. For Gemini, references
are replaced by their targets; `const`, `oneOf`, lists of types and bounds of integers
are expressed with other keywords.

Constraints that the new schema cannot express go into the description. Schemas that all
vendors accept stay unchanged. The client validates calls against the original schema.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from byok.core.chat import Json
from byok.core.wire.json_body import parse_json, write_json
from byok.core.wire.json_fields import objects_in, read_object

_MAX_NOTE_CHARS = 300
_ANYTHING: Json = {}
# Keywords whose value is an object of schemas, one schema, or a list of schemas.
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SINGLE = (
    *("additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("contains", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_REFUSED_AT_TOP = ("enum", "const", "not")
# Constraints of values, which models can do without.
_CONSTRAINTS = frozenset(
    (
        *("pattern", "format", "minLength", "maxLength", "minItems", "maxItems"),
        *("uniqueItems", "minProperties", "maxProperties", "patternProperties"),
        *("propertyNames", "minimum", "maximum", "exclusiveMinimum"),
        *("exclusiveMaximum", "multipleOf"),
    )
)
_ANY_TYPE = ("string", "number", "boolean", "object", "array", "null")
_SHARED_REF = re.compile(r"#/(?:\$defs|definitions)/([^/]+)\Z")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_MAX_RESOLVED = 2000  # schemas inside of references, which may double at every step
_MAX_DEPTH = 100
_CACHE_SIZE = 1000  # schemas; an agent sends the same ones at every step
# Keywords that determine the type of a value.
_TYPE_KEYS = {"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "not"}
KINDS = ("string", "number", "integer", "boolean", "array", "object", "null")
# Other names that authors write for a type.
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
_MAX_ROUNDS = 20  # of merging unions inside of unions
_UNION_WORDS = {"anyOf": "at least", "oneOf": "exactly"}
_GEMINI_KEYS = frozenset(
    (
        *("type", "format", "title", "description", "nullable", "enum", "default"),
        *("properties", "required", "propertyOrdering", "items", "pattern"),
        *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
        *("minProperties", "maxProperties"),
    )
)
_UNNEEDED_KEYS = frozenset(  # they are dropped without a note
    (
        *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref"),
        *("const", "additionalProperties", "unevaluatedProperties"),
        *("deprecated", "readOnly", "writeOnly"),
    )
)
_GEMINI_FORMATS = frozenset(("enum", "date-time", "float", "double", "int32", "int64"))
_GEMINI_MAX_NODES = 2000
_GEMINI_MAX_DEPTH = 60


@lru_cache(maxsize=_CACHE_SIZE)
def write_schema(raw: bytes, *, narrow: bool, plain_keys: bool) -> Json:
    """Return the schema to send for a schema in JSON. It is cached: do not modify it.

    `narrow` (Gemini's subset) and `plain_keys` are quirks of the vendor.
    """
    schema = _Cleaner(parse_json(raw)).top()
    if plain_keys:
        _move_odd_keys(schema)
    return _Narrower(schema).node(schema) if narrow else schema


def write_parameters(
    parameters: Json, *, narrow: bool = False, plain_keys: bool = False
) -> Json:
    """Return the schema to send for the parameters of a tool: do not modify it."""
    raw = write_json({**parameters, "type": "object"})
    return write_schema(raw, narrow=narrow, plain_keys=plain_keys)


def without_constraints(schema: Any) -> Any:
    """Return a schema with types, keys and enums only.

    llama.cpp and others write a grammar for a schema, but do not support all
    constraints. A schema without a type gets all types.
    """
    if not isinstance(schema, dict):
        return schema
    bare = {k: v for k, v in schema.items() if k not in _CONSTRAINTS}
    node = change_inside(bare, without_constraints)
    if not (_TYPE_KEYS | {"properties", "items"}) & node.keys():
        node["type"] = [*_ANY_TYPE]
    return node


def change_inside(schema: Json, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a schema whose direct subschemas are changed."""
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


# --- The form for all vendors ---


class _Cleaner:
    """Rewrites one schema to the form that all vendors accept."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._budget = _MAX_RESOLVED
        self._depth = 0

    def top(self) -> dict[str, Any]:
        """Return the whole schema as one object without anyOf or oneOf at the top."""
        node = dict(self._root)
        if isinstance(node.get("$ref"), str):
            node = self._resolve(node, ())[0]
        notes = unite(node, lambda part: self._resolve(dict(part), ())[0])
        notes += [note(key, node.pop(key)) for key in _REFUSED_AT_TOP if key in node]
        properties = node.get("properties")
        node["properties"] = properties if isinstance(properties, dict) else {}
        node["type"] = "object"
        shared = node.pop("definitions", None)
        if isinstance(shared, dict):
            merge(node, {"$defs": shared})
        return with_notes(self._node(node, ()), notes)

    def _node(self, schema: Any, inside: tuple[str, ...]) -> dict[str, Any]:
        """Rewrite one schema; `inside` are the references that contain it."""
        if self._depth >= _MAX_DEPTH or not isinstance(schema, dict):
            return {"not": {}} if schema is False else {}
        self._depth += 1
        self._budget -= bool(inside)
        try:
            return self._rewrite(schema, inside)
        finally:
            self._depth -= 1

    def _rewrite(self, schema: Json, inside: tuple[str, ...]) -> dict[str, Any]:
        node, notes = dict(schema), list[str]()
        if "$ref" in node:
            node, inside = self._rewrite_reference(node, inside, notes)
        shape(node)
        notes += _fit_enum(node)
        if "pattern" in node and not is_pattern(node["pattern"]):
            notes.append(note("pattern", node.pop("pattern")))
        _move_required_flags(node)
        _drop_invalid_schemas(node)
        node = change_inside(node, lambda child: self._node(child, inside))
        notes += _unify_items(node)
        _define_required(node)
        _move_type_into_choices(node)
        return with_notes(node, notes)

    def _rewrite_reference(
        self, node: dict[str, Any], inside: tuple[str, ...], notes: list[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Keep a reference to a shared schema; replace others by their target."""
        ref = node["$ref"] if isinstance(node["$ref"], str) else ""
        shared, target = _SHARED_REF.match(ref), target_of(ref, self._root)
        if target is None or (not shared and (ref in inside or self._budget <= 0)):
            del node["$ref"]
            notes += [note("as", ref.rpartition("/")[2])] if ref else []
            return node, inside
        if not shared:
            return self._resolve(node, inside)
        repeated = node.keys() & target.keys()
        if repeated and ref not in inside and self._budget > 0:
            return self._resolve(node, inside)
        node["$ref"] = f"#/$defs/{shared[1]}"
        return {k: v for k, v in node.items() if k not in repeated}, inside

    def _resolve(
        self, node: dict[str, Any], inside: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Merge the target of a reference with the keywords beside it."""
        while isinstance(ref := node.get("$ref"), str):
            target = target_of(ref, self._root)
            self._budget -= 1
            del node["$ref"]
            if ref in inside or target is None or self._budget < 0:
                break
            inside = (*inside, ref)
            merge(node, target)
        return node, inside


def _drop_invalid_schemas(node: dict[str, Any]) -> None:
    """Drop subschemas that are invalid or allow no value."""
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


def _fit_enum(node: dict[str, Any]) -> list[str]:
    """Drop values of an enum or a const that do not have the declared type."""
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


def _move_required_flags(node: dict[str, Any]) -> None:
    """Move `required: true` (draft 3) from a property to its object."""
    properties = node.get("properties") or {}
    flagged = [
        name
        for name, child in properties.items()
        if isinstance(child, dict) and child.get("required") is True
    ]
    if flagged:
        node["required"] = list(dict.fromkeys((*node.get("required", ()), *flagged)))


def _unify_items(node: dict[str, Any]) -> list[str]:
    """Replace the schemas of an array's items by one for all."""
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


def _define_required(node: dict[str, Any]) -> None:
    """Add required keys to the properties, or drop those that are not allowed."""
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


def _move_type_into_choices(node: dict[str, Any]) -> None:
    """Move a type beside anyOf or oneOf into each of their schemas."""
    keys = [key for key in ("anyOf", "oneOf") if key in node]
    if not keys or "type" not in node:
        return
    kind = node.pop("type")
    for key in keys:
        node[key] = [
            choice if _TYPE_KEYS & choice.keys() else {"type": kind, **choice}
            for choice in node[key]
        ]
        for choice in node[key]:
            if "array" in kinds_of(choice):
                choice.setdefault("items", {})


def _move_odd_keys(schema: dict[str, Any]) -> None:
    """Move keys that Anthropic refuses into the description; calls may use them."""
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


def unite(node: dict[str, Any], resolve: Callable[[Json], Json]) -> list[str]:
    """Merge allOf, anyOf and oneOf of an object into it; return notes on them.

    A key may have the values that any of the schemas allows, and is required if all of
    them require it. `resolve` replaces a reference by its target.
    """
    notes: list[str] = []
    for _ in range(_MAX_ROUNDS):
        parts = objects_in(node.pop("allOf", None))
        for part in parts:
            merge(node, resolve(part))
        for name in _UNION_WORDS:
            if choices := [resolve(c) for c in objects_in(node.pop(name, None))]:
                sets = [", ".join(_required_names(choice)) for choice in choices]
                words = f"{_UNION_WORDS[name]} one of these sets of keys"
                short = f"{words}: {'; '.join(sets)}"
                notes.append(short if all(sets) else note(name, choices))
                _merge_choices(node, choices)
        if not parts and not any(name in node for name in ("allOf", *_UNION_WORDS)):
            break
    else:
        for name in ("allOf", *_UNION_WORDS):
            node.pop(name, None)
    return notes


def _merge_choices(node: dict[str, Any], choices: list[Json]) -> None:
    own = read_object(node, "properties")
    variants: dict[str, list[Any]] = {}
    for choice in choices:
        for key, schema in read_object(choice, "properties").items():
            if key not in own:
                variants.setdefault(key, []).append(schema)
    added = {
        key: {"anyOf": schemas} if len(schemas) > 1 else schemas[0]
        for key, schemas in zip(variants, map(distinct, variants.values()), strict=True)
    }
    if added:
        node["properties"] = {**own, **added}
    common = set.intersection(*(set(_required_names(choice)) for choice in choices))
    common_names = [name for name in _required_names(choices[0]) if name in common]
    merge(node, {"required": common_names} if common else {})
    for choice in choices:  # the next round merges their allOf
        merge(node, {key: choice[key] for key in ("allOf",) if key in choice})


def _required_names(schema: Json) -> list[str]:
    names = schema.get("required")
    return [n for n in names if isinstance(n, str)] if isinstance(names, list) else []


def shape(node: dict[str, Any]) -> None:
    """Drop or rewrite values of one schema that no current metaschema allows."""
    for key, bound in _BOUNDS:
        if isinstance(node.get(key), bool) and node.pop(key) and bound in node:
            node[key] = node.pop(bound)  # in draft 4, a flag beside the bound
    for key in [k for k in node if k in _CHECKS and not _CHECKS[k](node[k])]:
        del node[key]
    if "required" in node:
        names = [name for name in node["required"] if isinstance(name, str)]
        node["required"] = list(dict.fromkeys(names))
    if "type" in node:
        _normalise_type(node)


def kinds_of(node: Mapping[str, Any]) -> list[str]:
    """Return the declared types of a schema, after `shape`."""
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


def _normalise_type(node: dict[str, Any]) -> None:
    value = node["type"] or "any"
    names = value if isinstance(value, list) else [value]
    kinds = list(dict.fromkeys(map(_known_kind, names)))
    if "" in kinds:
        del node["type"]  # an unknown type may mean anything
    else:
        node["type"] = kinds[0] if len(kinds) == 1 else kinds


def _known_kind(kind: Any) -> str:
    if kind is None:
        return "null"
    word = kind.lower() if isinstance(kind, str) else ""
    word = _ALIASES.get(word, word)
    return word if word in KINDS else ""


# --- The subset that Gemini accepts ---


class _Narrower:
    """Rewrites one schema to Gemini's subset, with the same meaning if possible."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._budget = _GEMINI_MAX_NODES  # resolved references may grow without end
        self._depth = 0

    def node(self, schema: Any, inside: tuple[str, ...] = ()) -> dict[str, Any]:
        """Rewrite one schema; `inside` are the references that contain it."""
        self._budget -= 1
        fits = self._budget >= 0 and self._depth < _GEMINI_MAX_DEPTH
        if not isinstance(schema, Mapping) or not fits:
            return {}
        self._depth += 1
        try:
            return self._rewrite(schema, inside)
        finally:
            self._depth -= 1

    def _rewrite(self, schema: Json, inside: tuple[str, ...]) -> dict[str, Any]:
        node, inside = self._resolve(dict(schema), inside)
        for part in objects_in(node.pop("allOf", None)):
            part, inside = self._resolve(dict(part), inside)
            merge(node, part)
        # Unions become anyOf, and null becomes nullable.
        for name in ("anyOf", "oneOf"):
            if choices := node.pop(name, None):
                _set_choices(node, choices)
        if isinstance(kinds := node.get("type"), list):
            del node["type"]
            _set_choices(node, [{"type": kind} for kind in kinds])
        if "anyOf" in node:  # the keywords beside it move into each of its schemas
            branches = []
            for branch in node.pop("anyOf"):
                part, within = self._resolve(dict(branch), inside)
                merge(part, node)
                branches.append(self.node(part, within))
            return branches[0] if len(branches) == 1 else {"anyOf": branches}
        notes = _replace_keywords(node)
        rewritten = {key: value for key, value in node.items() if key in _GEMINI_KEYS}
        notes += [
            note(key, value)
            for key, value in node.items()
            if key not in _GEMINI_KEYS | _UNNEEDED_KEYS
        ]
        extra = node.get("additionalProperties")
        if isinstance(extra, Mapping) and extra:
            notes.append(note("values of other keys", extra))
        self._rewrite_children(rewritten, inside)
        return with_notes(rewritten, notes)

    def _rewrite_children(self, node: dict[str, Any], inside: tuple[str, ...]) -> None:
        properties = node.pop("properties", None)
        required = node.pop("required", None)
        if properties is not None:
            node["properties"] = {
                k: self.node(v, inside) for k, v in properties.items()
            }
            if defined := [name for name in required or () if name in properties]:
                node["required"] = defined
        if node.get("type") == "array" or "items" in node:
            items = self.node(node.get("items"), inside)
            node["items"] = items or {"type": "string"}  # Gemini requires items

    def _resolve(
        self, node: dict[str, Any], inside: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        while isinstance(ref := node.get("$ref"), str):
            del node["$ref"]
            self._budget -= 1
            target = target_of(ref, self._root) if self._budget > 0 else None
            if ref in inside or target is None:
                node.setdefault("type", "object")
                return with_notes(node, [note("as", ref.rpartition("/")[2])]), inside
            inside = (*inside, ref)
            node = {**target, **node}
        return node, inside


def _set_choices(node: dict[str, Any], choices: Sequence[Json]) -> None:
    others = [choice for choice in choices if choice.get("type") != "null"]
    if len(others) < len(choices):
        node["nullable"] = True
    if others:
        node.setdefault("anyOf", others)


def _replace_keywords(node: dict[str, Any]) -> list[str]:
    """Replace keywords by ones that Gemini accepts; return notes on the others."""
    notes: list[str] = []
    if "const" in node:
        node["enum"] = [node["const"]]
    if "enum" in node:
        notes += _fit_gemini_enum(node, node["enum"])
    if kind := node.pop("format", None):
        if kind in _GEMINI_FORMATS:
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


def _fit_gemini_enum(node: dict[str, Any], values: list[Any]) -> list[str]:
    """Keep an enum of strings; return a note on any other."""
    if None in values:
        node["nullable"] = True
        values = [value for value in values if value is not None]
    if values and all(isinstance(value, str) for value in values):
        node["enum"] = values
        node.setdefault("type", "string")
        return []
    del node["enum"]
    return [note("one of", values)] if values else []


# --- Parts of both ---


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return JSON values without duplicates."""
    return list({write_json(value): value for value in values}.values())


def note(name: str, value: Any) -> str:
    """Return a note on a constraint that the schema cannot express."""
    text = write_json(value).decode("utf-8", "replace")
    return f"{name}: {text[:_MAX_NOTE_CHARS]}"


def with_notes(node: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    """Append notes to the description of a schema."""
    if text := "; ".join(notes):
        description = node.get("description")
        node["description"] = f"{description} ({text})" if description else text
    return node


def merge(node: dict[str, Any], part: Json) -> None:
    """Merge one schema of an allOf into another; {} is replaced by any schema."""
    for key, value in part.items():
        old = node.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            kept = {k: v for k, v in old.items() if k not in value or v != _ANYTHING}
            node[key] = {**value, **kept}
        elif isinstance(old, list) and isinstance(value, list) and key == "required":
            node[key] = distinct([*old, *value])
        else:
            node.setdefault(key, value)


def target_of(ref: str, root: Json) -> Json | None:
    """Return the target of a reference into the same document, or None."""
    target: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, Mapping) else None
    return target if ref.startswith("#/") and isinstance(target, Mapping) else None


def _is_a(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def is_schema(value: Any) -> bool:
    """Tell whether a value is a schema: an object or a boolean."""
    return isinstance(value, Mapping | bool)


def _maps_keys(value: Any) -> bool:
    """Tell whether a value maps keys to the keys that they require."""
    return isinstance(value, Mapping) and all(
        isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
        and len(set(keys)) == len(keys)
        for keys in value.values()
    )


# The values that keywords may have; others are dropped.
_VALID_VALUES: tuple[tuple[Callable[[Any], bool], str], ...] = (
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
    (_maps_keys, "dependencies dependentRequired"),
    # Keywords of other drafts or for whole documents, which no model needs.
    (_is_a(), "$schema $anchor $dynamicAnchor $vocabulary $recursiveAnchor"),
    (_is_a(), "$recursiveRef"),
)
_CHECKS = {key: check for check, keys in _VALID_VALUES for key in keys.split()}
