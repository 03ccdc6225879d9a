"""Tool schemas for Gemini: only words it knows, nothing lost that it can say."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.dialects.schemas import write_parameters
from tests.fakes.schemas import GEMINI_FIELDS, SCHEMAS
from tests.fakes.values import VALUES


def narrow(schema: dict[str, Any]) -> Any:
    return write_parameters(schema, narrow=True)


def one(schema: Any, **root: Any) -> Any:
    """Narrow the schema of one property."""
    whole = narrow({"type": "object", "properties": {"x": schema}, **root})
    assert whole["type"] == "object"
    return whole["properties"]["x"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(
            {"type": "string", "minLength": 1, "pattern": "a", "default": "b"},
            {"type": "string", "minLength": 1, "pattern": "a", "default": "b"},
            id="what it knows stays",
        ),
        pytest.param(
            {"enum": ["a", None]},
            {"type": "string", "enum": ["a"], "nullable": True},
            id="an enum with null",
        ),
        pytest.param(
            {"type": ["string", "integer"], "description": "An id."},
            {
                "anyOf": [
                    {"type": "string", "description": "An id."},
                    {"type": "integer", "description": "An id."},
                ]
            },
            id="two types",
        ),
        pytest.param(
            {"oneOf": [{"type": "string"}, {"type": "null"}], "title": "T"},
            {"type": "string", "title": "T", "nullable": True},
            id="one of a type and null",
        ),
        pytest.param(
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "a": {"type": "string"},
                            "b": {"type": "string"},
                        },
                        "required": [name],
                    }
                    for name in ("a", "b")
                ]
            },
            id="one of two keys",
        ),
        pytest.param(
            {
                "allOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    {"properties": {"b": {"type": "string"}}, "required": ["b"]},
                ],
                "required": ["a"],
            },
            {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "required": ["a", "b"],
            },
            id="all of two",
        ),
        pytest.param(
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
            id="bounds of an integer",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {
                "type": "array",
                "items": {"type": "string"},
                "description": "uniqueItems: true",
            },
            id="a constraint it does not know",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            {
                "type": "object",
                "description": 'values of other keys: {"type":"string"}',
            },
            id="a map",
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2], "description": "How many."},
            {"type": "integer", "description": "How many. (one of: [1,2])"},
            id="an enum of numbers",
        ),
        pytest.param(True, {}, id="anything"),
    ],
)
def test_gemini_schema_has_known_keywords_only(schema: Any, expected: Any) -> None:
    assert one(schema) == expected


@pytest.mark.parametrize("place", ["$defs", "definitions"])
def test_gemini_schema_reference_is_inlined(place: str) -> None:
    defs = {place: {"a/b": {"type": "string", "const": "x"}}}
    schema = {"$ref": f"#/{place}/a~1b", "description": "D"}
    assert one(schema, **defs) == {"type": "string", "enum": ["x"], "description": "D"}


def test_gemini_schema_references_that_double_at_every_step_end() -> None:
    defs = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}}
        for n in range(40)
    }
    assert one({"$ref": "#/$defs/d0"}, **{"$defs": defs})


@pytest.mark.parametrize("key", ["items", "not", "properties", "anyOf", "allOf"])
def test_gemini_schema_depth_is_limited(key: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(110):
        inner: Any = {"a": schema} if key == "properties" else schema
        schema = {key: [inner] if key.endswith("Of") else inner}
    check(narrow(schema))


def check(node: Any) -> None:
    """Nothing in a schema that Gemini would not know."""
    assert isinstance(node, dict)
    assert node.keys() <= GEMINI_FIELDS
    assert set(node.get("required", ())) <= set(node.get("properties", ()))
    if "anyOf" in node:
        assert node.keys() == {"anyOf"}
    for child in [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *([node["items"]] if "items" in node else ()),
    ]:
        check(child)


KEYWORDS = st.sampled_from(
    [
        *("$ref", "const", "enum", "type", "format", "anyOf", "oneOf", "allOf"),
        *("items", "properties", "required", "not", "exclusiveMinimum", "$defs"),
    ]
)
STRANGE: st.SearchStrategy[Any] = st.recursive(
    VALUES | st.sampled_from(["#/properties/a", "#/$defs/a", "string", "null"]),
    lambda inner: (
        st.dictionaries(KEYWORDS | st.sampled_from(["a", "b"]), inner, max_size=4)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(SCHEMAS | st.dictionaries(KEYWORDS, STRANGE, max_size=5))
def test_gemini_schema_from_any_schema_has_known_keywords_only(
    schema: dict[str, Any],
) -> None:
    before = copy.deepcopy(schema)
    check(narrow(schema))
    assert schema == before
