"""Choices at the top of a schema: one object with the keys of all, and a note."""

from typing import Any

from byok.core.chat import Json
from byok.dialects.schemas.parts import unite
from tests.fakes.mcp_servers import NOTION, TEXT

NUMBER = {"type": "number"}


def united(schema: Json, **shared: Json) -> tuple[dict[str, Any], list[str]]:
    """Unite the choices of a schema; `shared` is what references mean."""
    node = dict(schema)
    notes = unite(node, lambda part: shared.get(part.get("$ref", ""), part))
    return node, notes


def test_schema_union_of_choices_is_one_object() -> None:
    schema = NOTION["notion-create-attachment"]
    node, notes = united(schema)
    assert list(node["properties"]) == [
        *("filename", "content", "source_url", "upload_id")
    ]
    assert "anyOf" not in node
    assert notes == [
        "at least one of these sets of keys: filename, content; filename, source_url; "
        "upload_id"
    ]


def test_schema_union_requires_what_all_choices_require() -> None:
    choices = [{"required": ["a", "b"]}, {"required": ["b", "c"]}]
    node, notes = united({"required": ["d"], "oneOf": choices})
    assert node["required"] == ["d", "b"]
    assert notes == ["exactly one of these sets of keys: a, b; b, c"]


def test_schema_union_property_allows_what_any_choice_allows() -> None:
    choices = [{"properties": {"a": TEXT, "b": TEXT}}, {"properties": {"a": NUMBER}}]
    node, (note,) = united({"properties": {"b": NUMBER}, "anyOf": choices})
    assert node["properties"] == {"b": NUMBER, "a": {"anyOf": [TEXT, NUMBER]}}
    assert note.startswith("anyOf: [")


def test_schema_union_of_all_of_requires_every_part() -> None:
    parts = [{"required": ["a"]}, {"properties": {"a": TEXT}, "required": ["b"]}]
    node, notes = united({"allOf": parts})
    assert node == {"required": ["a", "b"], "properties": {"a": TEXT}}
    assert notes == []
