"""Refusals of tools: which one, and how many are taken."""

import pytest

from byok.core.chat import ToolDefinition
from byok.dialects.chat_changes import find_description_limit, find_limit, find_tool

TOOLS = {
    "a": ToolDefinition("a", "", {"properties": {"x": {"items": {}}}}),
    "b": ToolDefinition("b", "", {"properties": {"x": {}, "y": {}}}),
    "c": ToolDefinition("c", "", {}),
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Invalid schema for function 'b'", "b"),
        ("tool `c` is odd", "c"),
        ("tools.1.custom.input_schema: wrong", "b"),
        ("tools[2].function.parameters", "c"),
        ("tools[0].function_declarations[1].parameters", "b"),
        ("at path 'properties.x.items': type", "a"),
        ("at path 'properties.y': type", "b"),
        ("at path 'properties.x': type", ""),  # two have one
        ("tools[0].function_declarations: too odd", ""),
        ("tools.7.custom", ""),
        ("function 'gone'", ""),
        ("", ""),
    ],
)
def test_a_tool_is_found_by_name_place_or_path(text: str, name: str) -> None:
    found = find_tool(text, TOOLS)
    assert (found.name if found else "") == name


@pytest.mark.parametrize(
    ("text", "offered", "most"),
    [
        ("At most 64 tools.", 150, 64),
        ("maximum 128, but got 150 instead", 150, 128),
        ("gpt-4.1 takes at most 64 tools, see error 3.", 150, 64),
        ("Too many tools.", 150, 128),
        ("Too many tools.", 100, 0),
        ("At most 64 tools.", 64, 0),
    ],
)
def test_how_many_tools_are_taken(text: str, offered: int, most: int) -> None:
    assert find_limit(text, offered) == most


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("'tools[0].function.description': maximum length 1024, got 1440", 1024),
        ("tools.3.description: at most 10 characters", 10),
        ("maximum length 1024", 0),
    ],
)
def test_how_long_descriptions_may_be(text: str, most: int) -> None:
    assert find_description_limit(text) == most
