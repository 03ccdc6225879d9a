"""Tools as clients offer them: definitions, arguments, long results."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from byok.augment.tools import read_tools
from byok.trials.tools import TOOLS, PlayedTool, run_tool
from byok.trials.trial_files import BadArguments, TrialFiles

EACH = pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)


@EACH
def test_a_definition_is_read_as_that_of_a_client(tool: PlayedTool) -> None:
    schema = json.loads(tool.definition["input_schema_json"])
    Draft202012Validator.check_schema(schema)
    assert {*schema["required"]} <= {*schema["properties"]}
    [read] = read_tools({"tool_definitions": [tool.definition]})
    assert (read.name, read.parameters) == (tool.name, schema)


@EACH
def test_a_call_without_a_parameter_or_of_another_type_is_refused(
    tool: PlayedTool,
) -> None:
    with pytest.raises(BadArguments, match=tool.required[0]):
        run_tool(tool, TrialFiles({}), {})
    wrong = {name: 1 for name in tool.required}
    with pytest.raises(BadArguments, match="of the type string"):
        run_tool(tool, TrialFiles({}), wrong)


def test_a_long_result_is_cut() -> None:
    workspace = TrialFiles({"a.py": "x\n" * 30_000})
    text = run_tool(TOOLS["view"], workspace, {"path": "a.py", "type": "file"})
    assert len(text) < 21_000
    assert text.endswith("(the rest is cut)\n")


@pytest.mark.shared
def test_the_parameters_of_recorded_tools_are_those_of_the_clients(
    shared: Path,
) -> None:
    recorded = json.loads(
        (shared / "protocol" / "02-chat-history-tool-results.json").read_text()
    )
    known = {t["name"]: t for t in recorded["body"]["tool_definitions"]}
    for name in ("view", "save-file"):
        theirs = json.loads(known[name]["input_schema_json"])
        assert {*theirs["properties"]} <= {*TOOLS[name].properties}
        assert {*theirs["required"]} <= {*TOOLS[name].required}
