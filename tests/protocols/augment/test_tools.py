"""The tools a client offers, in every shape, hostile ones included."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import ToolDefinition
from byok.core.wire.json_body import write_json
from byok.protocols.augment.tools import (
    MAX_TOOLS,
    read_tools,
    shorten,
    shorten_descriptions,
)
from tests.fakes.schemas import SCHEMAS
from tests.fakes.values import VALUES

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
        pytest.param({"input_schema": SCHEMA, "input_schema_json": "{}"}, SCHEMA,
                     id="the object wins"),
        pytest.param({}, EMPTY, id="none"),
        pytest.param({"input_schema_json": "{bad"}, EMPTY, id="no JSON"),
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


# Shorter descriptions of tools: what goes, and what must stay


LONG = "Says what it is in one sentence. " + "Then it says more of it, at length. " * 9


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
        ({"additionalProperties": False}, {"additionalProperties": False}),
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


# Descriptions that are shortened to their first sentences


MORE = " And more words follow here, which nobody needs to read at all."

CHINESE = "读取工作区中的一个文件，并返回其内容。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reads a file. Quickly.", "Reads a file. Quickly."),
        (f"Reads a file of the workspace.{MORE}", "Reads a file of the workspace."),
        (
            f"Reads files, e.g. of Fig. 2 and i.e. notes.md or v1.2.{MORE}",
            "Reads files, e.g. of Fig. 2 and i.e. notes.md or v1.2.",
        ),
        ("Does it (really!). " + "X" * 60, "Does it (really!)."),
        ("# View\n\nReads a file.\n\nThen more." + MORE, "Reads a file."),
        ("```\ncode\n```\nReads a file.\n\n" + MORE, "Reads a file."),
        ("<example>\nx\n</example>\nReads a file.\n\n" + MORE, "Reads a file."),
        ("Reads a file. It:\n- does this\n- and that" + MORE, "Reads a file."),
        ("It can:\n1. do this\n2. and that" + MORE, "It can"),
        ("# Only a heading\n\n```\n" + "x" * 70, "Only a heading"),
        (f"{CHINESE}{'然后' * 40}", CHINESE),
    ],
)  # fmt: skip
def test_whole_sentences_of_the_first_paragraph_are_kept(
    text: str, expected: str
) -> None:
    assert shorten(text, 64) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four five", "one two three…"),
        ("one two three, four five", "one two three…"),
        ("No. one two three four", "No. one two…"),
        ("x" * 30, "x" * 15 + "…"),
    ],
)
def test_a_sentence_that_is_too_long_is_cut_behind_a_word(
    text: str, expected: str
) -> None:
    assert shorten(text, 16) == expected


PIECES = st.sampled_from(
    [
        "Read it. ",
        "word ",
        "# ",
        "\n",
        "\n\n",
        "```\n",
        "<example>",
        "- ",
        "。",
        "e.g. ",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join))
def test_what_is_left_fits_says_something_and_stays(text: str) -> None:
    for limit in (20, 100):
        found = shorten(text, limit)
        assert len(found) <= min(limit, len(text))
        assert bool(found.strip()) or not text.strip()
        assert shorten(found, limit) == found
