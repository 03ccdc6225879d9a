"""Convert parsed arguments to the types of their JSON Schema, without losing anything.

Only `type`, `properties`, `items`, `required`, `default` and `enum` are read, and
`additionalProperties` by `is_valid`.
References are not followed and patterns are not executed, so a hostile schema costs no
more than one walk over the value.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from byok.core.chat import Json
from byok.core.wire.lenient_json import parse_lenient

_MAX_DEPTH = 32
_EMPTY: dict[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "array": [],
    "object": {}, "null": None,
}  # fmt: skip
_LARGEST_EXACT = 2**53


def coerce(
    value: Any, schema: Json, rules: list[str], *, path: str = "", depth: int = 0
) -> Any:
    """Return the value with lossless conversions; each adds a line to `rules`."""
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return value
    wanted = _types(schema)
    if wanted and not any(_IS[kind](value) for kind in wanted):
        found = [(kind, new) for kind in wanted for new in _TO[kind](value)]
        if len(found) == 1 and _is_allowed(found[0][1], schema):
            kind, value = found[0]
            rules.append(f"{path or 'arguments'}: type made {kind}")
    if isinstance(value, dict):
        properties = _mapping(schema.get("properties"))
        return {
            key: coerce(
                item,
                _mapping(properties.get(key)),
                rules,
                path=f"{path}.{key}" if path else key,
                depth=depth + 1,
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = _mapping(schema.get("items"))
        return [
            coerce(item, items, rules, path=f"{path}[]", depth=depth + 1)
            for item in value
        ]
    return value


def is_valid(value: Any, schema: Json, depth: int = 0) -> bool:
    """Tell whether a schema allows a value, as far as the keywords read here say."""
    if depth > _MAX_DEPTH or not isinstance(schema, Mapping):
        return True
    wanted = _types(schema)
    if wanted and not any(_IS[kind](value) for kind in wanted):
        return False
    if not _is_allowed(value, schema):
        return False
    if isinstance(value, dict):
        properties = _mapping(schema.get("properties"))
        closed = schema.get("additionalProperties") is False
        if missing_required(value, schema) or (closed and value.keys() - properties):
            return False
        inner = ((item, _mapping(properties.get(key))) for key, item in value.items())
        return all(is_valid(item, known, depth + 1) for item, known in inner)
    if isinstance(value, list):
        items = _mapping(schema.get("items"))
        return all(is_valid(item, items, depth + 1) for item in value)
    return True


def fill_missing(
    value: dict[str, Any], schema: Json, rules: list[str], *, invent: bool = False
) -> dict[str, Any]:
    """Add the declared defaults of required properties that are missing.

    With `invent`, a required property without a default gets the empty value of its
    type.
    """
    properties = _mapping(schema.get("properties"))
    added: dict[str, Any] = {}
    for name in missing_required(value, schema):
        declared = _mapping(properties.get(name))
        kinds = _types(declared)
        if "default" in declared:
            added[name] = copy.deepcopy(declared["default"])
            rules.append(f"{name}: schema default")
        elif invent and kinds:
            added[name] = copy.deepcopy(_EMPTY[kinds[0]])
            rules.append(f"{name}: filled with an empty {kinds[0]}")
    return {**value, **added} if added else value


def missing_required(value: Mapping[str, Any], schema: Json) -> list[str]:
    """List the required properties that the value lacks."""
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return [n for n in names if isinstance(n, str) and n not in value]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _types(schema: Json) -> list[str]:
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    return [kind for kind in kinds if isinstance(kind, str) and kind in _IS]


def _is_allowed(value: Any, schema: Json) -> bool:
    choices = schema.get("enum")
    return not isinstance(choices, list) or value in choices


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "integer": _is_integer,
    "number": lambda v: _is_integer(v) or isinstance(v, float),
    "boolean": lambda v: isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def _from_text(kind: str) -> Callable[[Any], list[Any]]:
    """Read a string that holds the JSON of the wanted type, and nothing else."""

    def read(value: Any) -> list[Any]:
        if not isinstance(value, str):
            return []
        try:
            parsed, liberties = parse_lenient(value)  # it keeps every digit
        except ValueError:
            return []
        return [parsed] if _IS[kind](parsed) and not liberties else []

    return read


def _to_integer(value: Any) -> list[Any]:
    if isinstance(value, float):
        exact = value.is_integer() and abs(value) < _LARGEST_EXACT
        return [int(value)] if exact else []
    return _from_text("integer")(value)


def _to_boolean(value: Any) -> list[Any]:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return [value.strip().lower() == "true"]
    return []


_TO: dict[str, Callable[[Any], list[Any]]] = {
    "string": lambda v: [str(v)] if _is_integer(v) else [],
    "integer": _to_integer,
    "number": _from_text("number"),
    "boolean": _to_boolean,
    "array": _from_text("array"),
    "object": _from_text("object"),
    "null": lambda v: [],
}
