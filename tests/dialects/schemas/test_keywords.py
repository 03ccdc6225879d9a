"""Values that a keyword may not have are dropped; the metaschema is the judge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from byok.dialects.schemas import parts as schema_shapes
from byok.dialects.schemas.parts import shape
from tests.fakes.values import VALUES

KEYWORDS = sorted(schema_shapes._MAY_BE)
# Their values hold schemas, which are shaped for themselves.
HOLDING = {
    *("anyOf", "oneOf", "allOf", "prefixItems", "properties", "patternProperties"),
    *("$defs", "definitions", "dependentSchemas", "items", "additionalProperties"),
    *("propertyNames", "not", "if", "then", "else", "contains", "contentSchema"),
    *("unevaluatedProperties", "unevaluatedItems", "pattern"),
}


def shaped(**node: Any) -> dict[str, Any]:
    shape(node)
    return node


@given(st.sampled_from([k for k in KEYWORDS if k not in HOLDING] + ["type"]), VALUES)
def test_schema_keyword_values_fit_the_metaschema(key: str, value: Any) -> None:
    Draft202012Validator.check_schema(shaped(**{key: value}))


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": ["dict", None]}, {"type": ["object", "null"]}),
        ({"type": None}, {}),
        ({"type": "file"}, {}),
        ({"type": ["string", "any"]}, {}),
        ({"type": []}, {}),
        ({"required": ["a", "a", 5]}, {"required": ["a"]}),
        ({"required": True}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"minLength": "1", "maxLength": -1, "minItems": 2}, {"minItems": 2}),
        ({"enum": [], "anyOf": []}, {}),
        ({"properties": None, "description": None}, {}),
        ({"$schema": "x", "$id": "https://x/y"}, {"$id": "https://x/y"}),
        ({"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
        ({"dependencies": {"a": {}}}, {}),
        ({"x-own": 5, "default": None}, {"x-own": 5, "default": None}),
    ],
)
def test_a_keyword_is_kept_spelled_or_dropped(
    node: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert shaped(**node) == expected
