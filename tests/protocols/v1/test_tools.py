"""Tools of clients: definitions, free-form ones, choices."""

import pytest

from byok.core.chat import ToolChoice, ToolUse
from byok.core.errors import BadRequest
from byok.protocols.v1.turns import MOST_TOOLS, ToolList, read_freeform, write_freeform


def test_tools_schema_is_an_object_and_the_first_of_a_name_counts() -> None:
    tools = ToolList()
    tools.add("a", "one", {})
    tools.add("a", "two", {})
    tools.add("b", "", {"properties": {"x": {}}})
    one, two = tools.definitions
    assert (one.description, one.parameters["type"]) == ("one", "object")
    assert two.parameters == {"properties": {"x": {}}, "type": "object"}


def test_tools_without_a_name_or_too_many_are_refused() -> None:
    tools = ToolList()
    with pytest.raises(BadRequest, match="name of a tool"):
        tools.add("", "", {})
    for number in range(MOST_TOOLS):
        tools.add(str(number), "", {})
    with pytest.raises(BadRequest, match="2000"):
        tools.add("one more", "", {})


@pytest.mark.parametrize(
    "form",
    [
        {"type": "grammar", "syntax": "lark", "definition": "start: X"},
        {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}},
    ],
)
def test_tools_of_free_form_are_functions_of_one_text(form: object) -> None:
    tools = ToolList()
    tools.add_freeform({"name": "patch", "description": "Patch.", "format": form})
    tools.add_freeform({"name": "plain", "format": {"type": "text"}})
    patch, plain = tools.definitions
    assert patch.description.startswith("Patch.\n\nThe input is a text of this lark")
    assert patch.description.endswith("start: X")
    assert patch.parameters["required"] == ["input"]
    assert plain.description == ""
    assert tools.freeform == {"patch", "plain"}


def test_tools_choice_is_among_them() -> None:
    tools = ToolList()
    assert tools.choose(ToolUse.REQUIRED) == ToolChoice()
    tools.add("a", "", {})
    tools.add("b", "", {})
    assert tools.choose(ToolUse.REQUIRED, "a") == ToolChoice(ToolUse.REQUIRED, "a")
    tools.keep_only(["b"])
    with pytest.raises(BadRequest, match="cannot pass on"):
        tools.choose(ToolUse.REQUIRED, "a")


def test_tools_left_out_are_named_briefly() -> None:
    tools = ToolList()
    tools.leave_out("web_search" + "x" * 1000)
    assert len(tools.left_out[0]) < 80


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (write_freeform('*** Begin\n"é"'), '*** Begin\n"é"'),
        ('{"input": 1}', '{"input": 1}'),
        ("[1]", "[1]"),
        ("no JSON", "no JSON"),
    ],
)
def test_tools_free_form_text_is_what_the_model_gave(
    arguments: str, given: str
) -> None:
    assert read_freeform(arguments) == given
