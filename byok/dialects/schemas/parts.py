"""Parts of rewriting a tool's JSON Schema: notes, references, unions, keywords."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from byok.core.chat import Json
from byok.core.wire.json_body import write_json

_LONGEST_NOTE = 300


def schemas_in(value: Any) -> list[Json]:
    """Return the schemas in a list, [] for anything else."""
    items = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, Mapping)]


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
    """Merge one schema of an allOf into another."""
    for key, value in part.items():
        old = node.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            node[key] = {**value, **old}
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


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_filled(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def is_schema(value: Any) -> bool:
    """Tell whether a value is a schema: an object or a boolean."""
    return isinstance(value, Mapping | bool)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and "#" not in value


def _is_dependent(value: Any) -> bool:
    """Tell whether a value maps keys to the keys that they require."""
    return isinstance(value, Mapping) and all(
        isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
        and len(set(keys)) == len(keys)
        for keys in value.values()
    )


def _never(value: Any) -> bool:
    return False


_WANTED: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_text, "title description format pattern $ref $comment contentEncoding"),
    (_is_text, "contentMediaType $dynamicRef"),
    (_is_count, "minLength maxLength minItems maxItems minProperties maxProperties"),
    (_is_count, "minContains maxContains"),
    (_is_number, "minimum maximum exclusiveMinimum exclusiveMaximum"),
    (lambda value: _is_number(value) and value > 0, "multipleOf"),
    (_is_flag, "uniqueItems deprecated readOnly writeOnly"),
    (_is_list, "required examples"),
    (_is_filled, "enum anyOf oneOf allOf prefixItems"),
    (_is_map, "properties patternProperties dependentSchemas $defs definitions"),
    (is_schema, "additionalProperties propertyNames not if then else contains"),
    (is_schema, "unevaluatedProperties unevaluatedItems contentSchema"),
    (lambda value: is_schema(value) or isinstance(value, list), "items"),
    (_is_address, "$id"),
    (_is_dependent, "dependencies dependentRequired"),
    # Of other drafts, or for whole documents: nothing that a model needs.
    (_never, "$schema $anchor $dynamicAnchor $vocabulary $recursiveAnchor"),
    (_never, "$recursiveRef"),
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
        parts = schemas_in(node.pop("allOf", None))
        for part in parts:
            merge(node, resolve(part))
        for name in _SAID:
            if choices := [resolve(c) for c in schemas_in(node.pop(name, None))]:
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
    added = {key: _any_of(distinct(variants)) for key, variants in found.items()}
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


def _any_of(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _required_names(schema: Json) -> list[str]:
    names = schema.get("required")
    return [n for n in names if isinstance(n, str)] if isinstance(names, list) else []


def _properties(schema: Json) -> Json:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}
