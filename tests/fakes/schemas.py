"""JSON Schemas of tools, arguments for them, and what each vendor refuses in them."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.fakes.values import SCALARS, Objects

KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
NAMES = st.sampled_from(["a", "b", "c", "path", "content"])
# Strings that hold the JSON of something, which models write where it was wanted.
NEARLY = st.sampled_from(
    [
        *("5", " 5", "-0", "5.0", "1e3", "007", "5 apples", "0x1F", ""),
        *("true", "False", "null", "None", "12345678901234567890123"),
        *("[1]", "[", '["5", true]', '{"a": "5"}', "{'a': 5}", '"5"'),
    ]
)

ARGUMENTS: st.SearchStrategy[Any] = st.recursive(
    NEARLY | SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=6,
)
OBJECTS: Objects = st.dictionaries(NAMES, ARGUMENTS, max_size=4)

_LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS)
        | st.lists(st.sampled_from(KINDS), max_size=3)
        | st.sampled_from(["any", 5, None]),
        "default": ARGUMENTS,
        "enum": st.lists(NEARLY | st.integers(0, 9), max_size=3),
    },
)


def _grown(inner: Objects) -> Objects:
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    return lists | _objects(inner)


def _objects(inner: Objects) -> Objects:
    return st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(NAMES, inner, max_size=4),
            "required": st.lists(NAMES, max_size=4),
        }
    )


SCHEMAS: Objects = _objects(st.recursive(_LEAVES, _grown, max_leaves=4))

_META = Draft202012Validator(
    Draft202012Validator.META_SCHEMA,
    format_checker=Draft202012Validator.FORMAT_CHECKER,
)
Rule: TypeAlias = Callable[[Any], Iterator[str]]
_CHOICES = ("oneOf", "anyOf", "allOf", "enum", "not")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SINGLE = (
    *("items", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("contains", "unevaluatedProperties", "unevaluatedItems", "contentSchema"),
)
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
GEMINI_FIELDS = {
    *("type", "format", "title", "description", "nullable", "enum", "default"),
    *("properties", "required", "propertyOrdering", "items", "anyOf", "pattern"),
    *("minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"),
    *("minProperties", "maxProperties"),
}


def walk(schema: Any, path: str = "root") -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every schema inside one, with its place."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key in _MAPS:
        if isinstance(schema.get(key), dict):
            for name, child in schema[key].items():
                yield from walk(child, f"{path}.{key}.{name}")
    for key in _SINGLE:
        yield from walk(schema.get(key), f"{path}.{key}")
    for key in _LISTS:
        if isinstance(schema.get(key), list):
            for number, child in enumerate(schema[key]):
                yield from walk(child, f"{path}.{key}.{number}")


def draft_2020_12(schema: Any) -> Iterator[str]:
    for error in _META.iter_errors(schema):
        yield f"{list(error.path)}: {error.message[:80]}"


def an_object(schema: Any) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "schema must be of type object"
    if not isinstance(schema.get("properties"), dict):
        yield "object schema missing properties"


def no_choice_at_the_top(schema: Any) -> Iterator[str]:
    yield from (f"{key} at the top level" for key in _CHOICES if key in schema)


def items_in_arrays(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        kind = node.get("type")
        is_array = "array" in (kind if isinstance(kind, list) else [kind])
        if is_array and not isinstance(node.get("items"), dict):
            yield f"{path}: array schema missing items"


def references_that_lead_somewhere(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if "$ref" in node and _target(schema, node["$ref"]) is None:
            yield f"{path}: unresolvable {node['$ref']}"


def shared_references(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if "$ref" not in node:
            continue
        if not re.fullmatch(r"#/\$defs/[^/]+", node["$ref"]):
            yield f"{path}: references must start with #/$defs/"
        said = (_target(schema, node["$ref"]) or {}).keys() & node.keys()
        if said - {"$ref"}:
            yield f"{path}: conflicting keywords after $ref expansion: {said}"


def types_inside_choices(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if "type" in node and ("anyOf" in node or "oneOf" in node):
            yield f"{path}: type should be defined in anyOf items"


def one_schema_for_items(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if "items" in node and not isinstance(node["items"], dict):
            yield f"{path}: items must be an object"


def values_of_their_type(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        kinds = node.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        values = node.get("enum", []) + [node[k] for k in ("const",) if k in node]
        for value in values if kinds else ():
            if not any(_is(value, kind) for kind in kinds):
                yield f"{path}: {value!r} does not match the type"


def properties_where_required(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if missing := set(node.get("required", ())) - node.get("properties", {}).keys():
            yield f"{path}: required but not in properties: {missing}"


def plain_keys(schema: Any) -> Iterator[str]:
    for key in schema.get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key):
            yield f"property key {key!r}"


def geminis_words(schema: Any) -> Iterator[str]:
    for path, node in walk(schema):
        if unknown := node.keys() - GEMINI_FIELDS:
            yield f"{path}: unknown {unknown}"
        if "enum" in node and not all(isinstance(v, str) for v in node["enum"]):
            yield f"{path}: enum of other things than strings"
        if isinstance(node.get("type"), list):
            yield f"{path}: a list of types"
        if "items" in node and not node["items"]:
            yield f"{path}: items missing field"


_OPENAI = (
    draft_2020_12,
    an_object,
    no_choice_at_the_top,
    items_in_arrays,
    references_that_lead_somewhere,
)
RULES: dict[str, tuple[Rule, ...]] = {
    "openai": _OPENAI,
    "azure": _OPENAI,
    "anthropic": (draft_2020_12, an_object, no_choice_at_the_top, plain_keys),
    "gemini": (
        an_object,
        no_choice_at_the_top,
        items_in_arrays,
        properties_where_required,
        geminis_words,
    ),
    "moonshot": (
        an_object,
        no_choice_at_the_top,
        types_inside_choices,
        one_schema_for_items,
        shared_references,
        references_that_lead_somewhere,
        values_of_their_type,
        properties_where_required,
    ),
    "mistral": (draft_2020_12, an_object),
    "groq": (an_object, properties_where_required, draft_2020_12),
    "deepseek": (an_object,),
    "xai": (draft_2020_12, an_object, references_that_lead_somewhere),
}
MOST_TOOLS = {
    "openai": 128,
    "azure": 128,
    "groq": 128,
    "deepseek": 128,
    "xai": 200,
    "gemini": 512,
}


def refused(vendor: str, tools: list[dict[str, Any]]) -> list[str]:
    """Return all that a vendor finds wrong with the tools of a request."""
    reasons = []
    if len(tools) > MOST_TOOLS.get(vendor, len(tools)):
        reasons.append(f"{len(tools)} tools")
    for tool in tools:
        function = tool["function"]
        for rule in RULES[vendor]:
            found = rule(function["parameters"])
            reasons += [f"{function['name']}: {reason}" for reason in found]
    return reasons


def _target(root: Any, ref: str) -> dict[str, Any] | None:
    found = root
    for step in ref.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON[kind])
