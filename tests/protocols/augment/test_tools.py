"""The tools a client offers, in every shape, hostile ones included."""

import json
from typing import Any

import pytest

from byok.core.chat import ToolDefinition
from byok.protocols.augment.tools import MAX_TOOLS, read_tools

EMPTY = {"type": "object", "properties": {}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def read(*rows: Any) -> tuple[ToolDefinition, ...]:
    return read_tools({"tool_definitions": list(rows)})


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        pytest.param({"input_schema_json": json.dumps(SCHEMA)}, SCHEMA, id="a string"),
        pytest.param({"input_schema": SCHEMA}, SCHEMA, id="an object"),
        pytest.param({"parameters": SCHEMA}, SCHEMA, id="alias"),
        pytest.param({"inputSchemaJson": json.dumps(SCHEMA)}, SCHEMA, id="camelCase"),
        pytest.param({"input_schema": SCHEMA, "input_schema_json": "{}"}, SCHEMA,
                     id="the object wins"),
        pytest.param({"input_schema": "x", "input_schema_json": json.dumps(SCHEMA)},
                     SCHEMA, id="an object that is none"),
        pytest.param({}, EMPTY, id="none"),
        pytest.param({"input_schema_json": "{bad"}, EMPTY, id="no JSON"),
        pytest.param({"input_schema_json": "[1]"}, EMPTY, id="a list"),
        pytest.param({"input_schema_json": None, "input_schema": 5}, EMPTY, id="odd"),
        pytest.param({"input_schema": {"type": ["object", "null"]}}, EMPTY,
                     id="another type"),
        pytest.param({"input_schema": {"anyOf": [{}]}}, {**EMPTY, "anyOf": [{}]},
                     id="no type"),
    ],
)  # fmt: skip
def test_tool_schema_is_that_of_an_object(fields: dict[str, Any], schema: Any) -> None:
    [tool] = read({"name": "view", **fields})
    assert tool.parameters == schema


def test_the_origin_of_an_mcp_tool_is_kept() -> None:
    row = {"name": "snap_box", "mcp_server_name": "box", "mcp_tool_name": "snap"}
    assert read(row)[0] == ToolDefinition("snap_box", "", EMPTY, "box", "snap")


def test_tool_definition_that_is_wrapped_is_read() -> None:
    [tool] = read({"definition": {"name": "view", "description": "Show."}})
    assert (tool.name, tool.description) == ("view", "Show.")


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "", None, {}, "b"], ["a", "b"]),
        (["a b", "a.b", "读取", "x" * 10_000], ["a b", "a.b", "读取", "x" * 10_000]),
    ],
)
@pytest.mark.case("B87")
def test_only_nameless_tools_are_dropped(names: list[Any], kept: list[str]) -> None:
    assert [tool.name for tool in read(*({"name": n} for n in names))] == sorted(kept)


def test_tools_have_one_order_and_those_of_mcp_servers_come_last() -> None:
    rows = [{"name": "b"}, {"name": "a_mcp", "mcp_server_name": "m"}, {"name": "a"}]
    names = ["a", "b", "a_mcp"]
    assert [tool.name for tool in read(*rows)] == names
    assert [tool.name for tool in read(*reversed(rows))] == names


@pytest.mark.case("B87")
def test_tool_definitions_of_equal_names_leave_the_first() -> None:
    rows = [{"name": "a", "description": text} for text in ("one", "two")]
    assert [tool.description for tool in read(*rows)] == ["one"]


def test_rows_that_are_no_tools_are_left_out() -> None:
    assert read(None, 5, "view", ["view"]) == ()
    assert read_tools({"tool_definitions": {"name": "a"}}) == ()
    assert read_tools({}) == ()


@pytest.mark.case("B87")
def test_two_thousand_tools_are_read_and_no_more() -> None:
    rows = [{"name": f"t{n}"} for n in range(MAX_TOOLS + 5)]
    assert len(read(*rows)) == MAX_TOOLS == 2000


def deep(levels: int) -> str:
    return '{"properties":{"a":' * levels + "{}" + "}}" * levels


@pytest.mark.case("B87")
def test_tool_schema_of_excessive_depth_is_replaced() -> None:
    assert [tool.parameters for tool in read(
        {"name": "a", "input_schema_json": deep(100)},
        {"name": "b", "input_schema_json": "[" * 200 + "]" * 200},
        {"name": "c", "input_schema_json": '{"a":' * 100_000},
    )] == [EMPTY] * 3  # fmt: skip


@pytest.mark.case("B87", "B88")
def test_tool_schema_references_and_patterns_pass_unchanged() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#"}},
        "patternProperties": {"(a+)+$": {"pattern": "(a+)+$"}},
    }
    assert read({"name": "a", "input_schema": schema})[0].parameters == schema
