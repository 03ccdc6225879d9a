"""Types of a schema: taken where one reading is certain, else the value stays."""

from typing import Any

import pytest

from byok.core.chat import Json
from byok.upstream.toolcalls.repair import (
    coerce,
    fill_missing,
    is_valid,
    missing_required,
)

SAME: Any = object()


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("integer", "5", 5),
        ("integer", "12345678901234567890123", 12345678901234567890123),
        ("integer", 5.0, 5),
        ("integer", 5.5, SAME),
        ("integer", 1e16, SAME),
        ("integer", True, SAME),
        ("integer", None, SAME),
        ("number", "-0.5e1", -5.0),
        ("number", "12345678901234567890123", 12345678901234567890123),
        ("number", "NaN", SAME),
        ("number", 5, SAME),
        ("boolean", "true", True),
        ("boolean", "False", False),
        ("boolean", "yes", SAME),
        ("string", 5, "5"),
        ("string", 5.5, SAME),
        ("array", '["a", 1]', ["a", 1]),
        ("array", "['a']", SAME),
        ("object", '{"a": 1}', {"a": 1}),
        ("object", '{"a": 1', SAME),
        ("object", "[1]", SAME),
        ("nonsense", "5", SAME),
        (["null", "integer"], "5", 5),
        (["integer", "string"], "5", SAME),
        ([], "5", SAME),
        ([{"type": "integer"}], "5", SAME),
    ],
)
def test_an_argument_is_coerced_to_its_type(kind: Any, value: Any, wanted: Any) -> None:
    rules: list[str] = []
    result = coerce({"v": value}, {"properties": {"v": {"type": kind}}}, rules)["v"]
    expected = value if wanted is SAME else wanted
    assert (type(result), result) == (type(expected), expected)
    assert bool(rules) == (wanted is not SAME)


@pytest.mark.parametrize(
    ("schema", "value", "result", "rules"),
    [
        pytest.param(
            {"properties": {"a": {"items": {"type": "boolean"}}}},
            {"a": ["true", False, "no"]},
            {"a": [True, False, "no"]},
            ["a[]: type made boolean"],
            id="inside an array",
        ),
        pytest.param(
            {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
            {"a": '["5"]'},
            {"a": [5]},
            ["a: type made array", "a[]: type made integer"],
            id="inside what was a string",
        ),
        pytest.param(
            {"properties": {"a": {"type": "integer", "enum": [1, 2]}}},
            {"a": "3"},
            {"a": "3"},
            [],
            id="no choice of the enum",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#"}}},
            {"a": {"a": "5"}},
            {"a": {"a": "5"}},
            [],
            id="references are not followed",
        ),
    ],
)
def test_coercion_walks_the_schema(
    schema: Json, value: Any, result: Any, rules: list[str]
) -> None:
    noted: list[str] = []
    assert coerce(value, schema, noted) == result
    assert noted == rules


def test_coercion_stops_in_an_endless_schema() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "5"
    for _ in range(200):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    assert coerce(value, schema, []) == value


FIELDS: Json = {
    "properties": {
        "plain": {"type": "string"},
        "declared": {"type": "string", "default": "d"},
        "list": {"type": ["array", "null"]},
        "untyped": {},
    },
    "required": ["plain", "declared", "list", "untyped", "unknown", 7],
}


@pytest.mark.parametrize(
    ("value", "invent", "added"),
    [
        pytest.param({}, False, {"declared": "d"}, id="only defaults"),
        ({}, True, {"declared": "d", "plain": "", "list": []}),  # inventing
        ({"plain": "x", "list": 1, "z": 2}, True, {"declared": "d"}),  # the rest
    ],
)
def test_coercion_adds_missing_defaults(
    value: dict[str, Any], invent: bool, added: dict[str, Any]
) -> None:
    rules: list[str] = []
    assert fill_missing(value, FIELDS, rules, invent=invent) == {**value, **added}
    assert len(rules) == len(added)


@pytest.mark.parametrize("required", [None, "path", 5, {"path": True}, [], [5, None]])
def test_an_invalid_required_list_requires_nothing(required: Any) -> None:
    assert missing_required({}, {"required": required}) == []


FARE = {
    "type": "object",
    "properties": {
        "kind": {"type": ["string", "null"], "enum": ["a", None]},
        "list": {"type": "array", "items": {"type": "integer"}},
        "inner": {"type": "object", "required": ["x"]},
    },
    "required": ["kind"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"kind": "a"}, True),
        ({"kind": None, "list": [1, 2], "inner": {"x": {}}}, True),
        ({}, False),
        ({"kind": "b"}, False),
        ({"kind": 5}, False),
        ({"kind": "a", "other": 1}, False),
        ({"kind": "a", "list": [1, "2"]}, False),
        ({"kind": "a", "inner": {}}, False),
    ],
)
def test_value_is_valid_where_its_schema_allows_it(value: Any, *, valid: bool) -> None:
    assert is_valid(value, FARE) is valid


def test_value_is_valid_where_the_schema_is_none() -> None:
    assert is_valid({"a": [1]}, {})
    assert is_valid({"a": 1}, {"properties": {"a": True}, "required": "a"})
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert is_valid(deep, {"type": "array"})
