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
def test_a_reference_leads_to_a_schema_or_nowhere(ref: str, found: Any) -> None:
    assert target_of(ref, ROOT) == found


def test_what_is_there_wins_over_what_is_merged() -> None:
    node: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": 1}}
    part = {"type": "x", "required": ["a", "b"], "properties": {"a": 2, "b": 3}}
    merge(node, {**part, "title": "T"})
    assert node == {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": 1, "b": 3},
        "title": "T",
    }


def test_notes_stand_behind_the_description() -> None:
    assert with_notes({}, []) == {}
    assert with_notes({}, ["a", "b"]) == {"description": "a; b"}
    assert with_notes({"description": "D."}, ["a"]) == {"description": "D. (a)"}


def test_a_note_is_short() -> None:
    assert note("enum", [1]) == "enum: [1]"
    assert len(note("enum", "x" * 1000)) < 320


def test_only_schemas_are_schemas() -> None:
    assert schemas_in([{}, True, None, {"a": 1}]) == [{}, {"a": 1}]
    assert schemas_in({"a": 1}) == []


def test_values_are_distinct_as_json() -> None:
    assert distinct([1, True, "1", 1, {"a": 1}, {"a": 1}, None]) == [
        *(1, True, "1", {"a": 1}, None)
    ]
