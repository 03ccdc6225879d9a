"""Shorter descriptions of tools: what goes, and what must stay."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import ToolDefinition
from byok.core.wire.json_body import write_json
from byok.protocols.augment.tools import read_tools, shorten_descriptions
from tests.fakes.schemas import SCHEMAS
from tests.fakes.values import VALUES

LONG = "Says what it is in one sentence. " + "Then it says more of it, at length. " * 9
SHORT = LONG[:32]


def shorten_schema(schema: dict[str, Any]) -> dict[str, Any]:
    (tool,), _ = shorten_descriptions([ToolDefinition("t", "", schema)])
    return dict(tool.parameters)


def described(**fields: Any) -> dict[str, Any]:
    return {
        "description": LONG,
        "title": "T",
        "examples": [1],
        "$comment": "c",
    } | fields


def brief(**fields: Any) -> dict[str, Any]:
    said = LONG[:68].rstrip()
    return {"description": said} | fields


@pytest.mark.parametrize("where", ["properties", "$defs", "definitions"])
def test_parameters_keep_all_but_the_words(where: str) -> None:
    names = ("title", "examples", "description", "properties")
    kept = {"type": "string", "enum": ["title"], "default": {"title": LONG}}
    schema = {"type": "object", "required": ["title"], where: {}}
    given = {**schema, where: {name: described(**kept) for name in names}}
    assert shorten_schema(given) == {
        **schema,
        where: {name: brief(**kept) for name in names},
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"items": described()}, {"items": brief()}),
        ({"items": [described(), True]}, {"items": [brief(), True]}),
        ({"anyOf": [described()]}, {"anyOf": [brief()]}),
        ({"additionalProperties": described()}, {"additionalProperties": brief()}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"properties": {"a": True}}, {"properties": {"a": True}}),
        ({"properties": 5, "items": "x", "anyOf": 3}, {"properties": 5, "items": "x",
         "anyOf": 3}),
        ({"description": [LONG]}, {"description": [LONG]}),
        ({"const": described()}, {"const": described()}),
    ],
)  # fmt: skip
def test_schemas_inside_schemas_are_shortened_too(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert shorten_schema(given) == expected


def test_the_note_tells_how_much_was_left_out() -> None:
    tools = [
        ToolDefinition("a", "x" * 1000, {"type": "object"}),
        ToolDefinition("b", "Brief.", {"type": "object"}, "server", "tool"),
    ]
    found, note = shorten_descriptions(tools)
    assert note == "1 tool description shortened from 1,040 to 240 characters"
    assert found[1] == tools[1]
    assert shorten_descriptions(tools[1:]) == ((tools[1],), "")
    assert shorten_descriptions([]) == ((), "")


def test_a_description_that_is_the_format_of_a_call_stays() -> None:
    patch = ToolDefinition("apply_patch", LONG, {"type": "object", "title": "T"})
    assert shorten_descriptions([patch]) == ((patch,), "")


def test_levels_beyond_the_limit_stay_as_they_are() -> None:
    schema: dict[str, Any] = {"type": "string", "description": LONG}
    for _ in range(120):
        schema = {"type": "array", "items": schema, "description": LONG}
    found = write_json(shorten_schema(schema)).decode()
    assert 0 < found.count(LONG) < 120
    assert found.count('"items"') == 120


@given(SCHEMAS, st.text(max_size=400), VALUES)
def test_the_same_tools_give_the_same_bytes_and_are_not_changed(
    schema: dict[str, Any], description: str, value: Any
) -> None:
    schema = {**schema, "default": value, "title": "T"}
    tool = ToolDefinition("t", description, schema)
    before = copy.deepcopy(schema)
    first, _ = shorten_descriptions([tool])
    again, _ = shorten_descriptions([ToolDefinition("t", description, before)])
    assert write_json(first[0].parameters) == write_json(again[0].parameters)
    assert first[0].description == again[0].description
    assert schema == before
    assert {**first[0].parameters, "title": "T"} == schema


@pytest.mark.shared
def test_recorded_definitions_keep_their_names_and_what_is_required(
    shared: Path,
) -> None:
    seen = 0
    for file in sorted((shared / "protocol").glob("*.json")):
        tools = read_tools(json.loads(file.read_bytes()).get("body") or {})
        found, _ = shorten_descriptions(tools)
        for old, new in zip(tools, found, strict=True):
            seen += 1
            assert (new.name, new.mcp_server_name) == (old.name, old.mcp_server_name)
            assert 0 < len(new.description) <= 200
            assert new.parameters.get("required") == old.parameters.get("required")
            assert (
                new.parameters["properties"].keys()
                == old.parameters["properties"].keys()
            )
    assert seen
