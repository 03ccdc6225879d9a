"""Unions at the top of a tool's schema, merged to one object with all their keys."""

from collections.abc import Callable
from typing import Any

from byok.chat import Json
from byok.dialects.schemas.parts import distinct, merge, note, schemas_in

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
