"""What Qdrant's public OpenAPI file says about requests, and about answers.

Stricter than the file in two ways: an object may have no field that is not listed, and
a place that is only said to be nullable takes nothing but null.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from jsonschema import Draft7Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.jsonschema import DRAFT7

_ROOT = "urn:qdrant"
_JSON = "application/json"
_NUMBER = {"type": "number", "format": "float"}


def _items(
    validator: Any, items: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Judge a list; a vector at once, as one number after another takes seconds."""
    is_vector = items == _NUMBER and isinstance(instance, list)
    if not (is_vector and {int, float}.issuperset(map(type, instance))):
        judge = Draft7Validator.VALIDATORS["items"]
        yield from judge(validator, items, instance, schema)


_Validator = extend(Draft7Validator, {"items": _items})


class Contract:
    """Judges exchanges; `violations` collects what broke the file, `seen` what came."""

    def __init__(self, file: Path) -> None:
        self._paths, self._registry = _load(file)
        self.violations: list[str] = []
        self.seen: set[str] = set()

    def judge(
        self, method: str, path: str, query: dict[str, str], body: bytes, answer: Any
    ) -> None:
        """Judge a request to which the answer was a success."""
        matches = [p for p in self._paths if _pattern(p).fullmatch(path)]
        place = min(matches, key=lambda p: p.count("{"), default="")
        what = f"{method} {place or path}"
        self.seen.add(what)
        operation = self._paths.get(place, {}).get(method.lower())
        if operation is None:
            self.violations.append(f"{what}: no such operation")
            return
        parameters = {one["name"] for one in operation.get("parameters", [])}
        for name in query.keys() - parameters:
            self.violations.append(f"{what}: query parameter {name}")
        if "requestBody" in operation:
            schema = operation["requestBody"]["content"][_JSON]["schema"]
            self._check(f"{what} request", schema, orjson.loads(body))
        elif body:
            self.violations.append(f"{what}: has a body")
        schema = operation["responses"]["200"]["content"][_JSON]["schema"]
        self._check(f"{what} answer", schema, answer)

    def judge_error(self, answer: Any) -> None:
        """Judge the answer to a request that was refused."""
        schema = {"$ref": f"{_ROOT}#/components/schemas/ErrorResponse"}
        self._check("error", schema, answer)

    def _check(self, what: str, schema: Any, value: Any) -> None:
        validator = _Validator(schema, registry=self._registry)
        for error in validator.iter_errors(value):
            self.violations.append(f"{what}: {error.json_path}: {error.message[:200]}")


@cache
def _load(file: Path) -> tuple[dict[str, Any], Any]:
    spec = orjson.loads(file.read_bytes())
    _adapt(spec)
    resource = DRAFT7.create_resource(spec)
    return spec["paths"], Registry().with_resource(_ROOT, resource)


def _adapt(node: Any) -> None:
    """Make JSON Schema of what OpenAPI 3.0 writes in its own way."""
    if isinstance(node, list):
        for one in node:
            _adapt(one)
    if not isinstance(node, dict):
        return
    if isinstance(reference := node.get("$ref"), str):
        node["$ref"] = reference.replace("#/", f"{_ROOT}#/", 1)
    if node.pop("nullable", False) is True:
        if "anyOf" in node:
            node["anyOf"].append({"type": "null"})
        else:
            node["type"] = [node["type"], "null"] if "type" in node else "null"
    if isinstance(node.get("properties"), dict) and "type" in node:
        node.setdefault("additionalProperties", False)
    for value in node.values():
        _adapt(value)


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
