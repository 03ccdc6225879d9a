"""Any JSON Schema of a tool to Gemini's part of it, whole and in bounded time."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from byok.core.errors import ByokError
from byok.core.wire.json_body import parse_body, write_json
from byok.dialects.schemas import write_parameters
from tools.fuzz.target import Draw, Target

_SECONDS = 3.0
_MAX_NODES = 4000
_KINDS = ("object", "array", "string", "integer", "number", "boolean", "null", "x")
_NAMES = ("a", "b", "c", "~0", "a/b", "")
_WITH_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_WITH_SCHEMA = ("items", "additionalProperties", "not", "if", "contains")
_WITH_VALUE = (
    *("const", "default", "enum", "minimum", "exclusiveMinimum", "exclusiveMaximum"),
    *("pattern", "format", "description", "title", "examples", "nullable", "required"),
)
_REMOVED = ("$ref", "$defs", "oneOf", "allOf", "const", "additionalProperties", "not")


def check(data: bytes) -> None:
    """Check raw bytes as a schema, or a schema built from its keywords."""
    draw = Draw(data)
    if draw.one_in(3):
        try:
            schema: dict[str, Any] = parse_body(draw.rest())
        except ByokError:
            return
    else:
        schema = _schema(draw, 0)
        schema["$defs"] = {name: _schema(draw, 1) for name in _NAMES[: draw.upto(5)]}
    check_schema(schema)


def check_schema(schema: dict[str, Any]) -> None:
    """Check that the result is the schema of an object with Gemini's keywords only."""
    original = json.dumps(schema)
    started = time.process_time()
    result = write_parameters(schema, narrow=True)
    assert time.process_time() - started < _SECONDS, "too slow"
    assert json.dumps(schema) == original, "the client's own schema was changed"
    write_json(result).decode()
    assert result["type"] == "object"
    nodes = list(_nodes(result))
    assert len(nodes) <= _MAX_NODES
    for node in nodes:
        assert not [name for name in _REMOVED if name in node]
        assert not isinstance(node.get("type"), list)
        assert set(node) == {"anyOf"} or "anyOf" not in node
        assert set(node.get("required", ())) <= set(node.get("properties", ()))
        if node.get("type") == "array":
            assert node["items"]


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from _nodes(child)
    for child in schema.get("anyOf", ()):
        yield from _nodes(child)
    if isinstance(items := schema.get("items"), Mapping):
        yield from _nodes(items)


def _schema(draw: Draw, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    if depth > 8:
        return schema
    if not draw.one_in(4):
        is_union = draw.one_in(5)
        kind = draw.of(_KINDS)
        schema["type"] = [kind, draw.of(_KINDS)] if is_union else kind
    for _ in range(draw.upto(3)):
        match draw.upto(5):
            case 0:
                count = draw.upto(3)
                schema["properties"] = {
                    draw.of(_NAMES): _schema(draw, depth + 1) for _ in range(count)
                }
                schema["required"] = [draw.of(_NAMES) for _ in range(draw.upto(3))]
            case 1:
                name = draw.of(("#/$defs/", "#/$defs/", "#/properties/", "#", "x#/"))
                schema["$ref"] = name + draw.of(_NAMES)
            case 2:
                schema[draw.of(_WITH_SCHEMAS)] = [
                    _schema(draw, depth + 1) for _ in range(draw.upto(3))
                ]
            case 3:
                schema[draw.of(_WITH_SCHEMA)] = _schema(draw, depth + 1)
            case _:
                schema[draw.of(_WITH_VALUE)] = _value(draw)
    return schema


def _value(draw: Draw) -> Any:
    text = draw.raw(6).decode("utf-8", "replace")
    return draw.of((text, 5, 1.5, True, None, [text, None], [1, text], {"a": text}, []))


TARGET = Target(
    check,
    seeds=[
        *(bytes((n * k) % 253 for k in range(9, 150)) for n in range(1, 20)),
        b'\x02{"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"},'
        b'{"type": "null"}]}}, "properties": {"x": {"const": 1}}, "required": ["x"]}',
    ],
    words=[
        *(b'"%s":' % name.encode() for name in (*_WITH_SCHEMAS, *_WITH_SCHEMA)),
        *(b'"%s"' % kind.encode() for kind in _KINDS),
        *(b'"$ref":"#/$defs/a"', b'"$defs":{', b'"properties":{', b'"type":', b"[{"),
    ],
)
