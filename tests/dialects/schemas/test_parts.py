"""Notes, merged schemas and references."""

from typing import Any

import pytest

from byok.dialects.schemas.parts import (
    distinct,
    merge,
    note,
    schemas_in,
    target_of,
    with_notes,
)

ROOT = {"$defs": {"a/b": {"type": "string"}, "n": 5}, "properties": {"x": {}}}


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("#/$defs/a~1b", {"type": "string"}),
        ("#/properties/x", {}),
        ("#/$defs/n", None),
        ("#/$defs/gone", None),
        ("#", None),
        ("https://example.org/$defs/a", None),
        ("", None),
    ],
)
def test_schema_reference_resolves_to_a_schema_or_nothing(ref: str, found: Any) -> None:
    assert target_of(ref, ROOT) == found


def test_schema_merge_keeps_existing_keywords() -> None:
    node: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": 1}}
    part = {"type": "x", "required": ["a", "b"], "properties": {"a": 2, "b": 3}}
    merge(node, {**part, "title": "T"})
    assert node == {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": 1, "b": 3},
        "title": "T",
    }


def test_schema_notes_are_appended_to_the_description() -> None:
    assert with_notes({}, []) == {}
    assert with_notes({}, ["a", "b"]) == {"description": "a; b"}
    assert with_notes({"description": "D."}, ["a"]) == {"description": "D. (a)"}


def test_schema_note_is_short() -> None:
    assert note("enum", [1]) == "enum: [1]"
    assert len(note("enum", "x" * 1000)) < 320


def test_schema_is_an_object_or_a_boolean() -> None:
    assert schemas_in([{}, True, None, {"a": 1}]) == [{}, {"a": 1}]
    assert schemas_in({"a": 1}) == []


def test_schema_values_are_distinct_as_json() -> None:
    assert distinct([1, True, "1", 1, {"a": 1}, {"a": 1}, None]) == [
        *(1, True, "1", {"a": 1}, None)
    ]
