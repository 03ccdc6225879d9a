"""Tools of clients: definitions, free-form ones, choices."""

import pytest

from byok.core.chat import ToolChoice, ToolUse
from byok.core.errors import BadRequest
from byok.protocols.v1.turns import MOST_TOOLS, ToolList


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
