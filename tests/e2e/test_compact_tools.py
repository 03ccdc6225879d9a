"""Tools described briefly to small models: what is asked, and what comes back."""

import json
from typing import Any

import pytest

from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream, Script, tool_answer

SAYS = "Shows a file of the workspace. " + "It takes a path. " * 40
TOOL = {
    "name": "view",
    "description": SAYS,
    "input_schema": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": SAYS, "title": "Path"},
            "line": {"type": "integer", "default": 1},
        },
        "required": ["path"],
    },
}


@pytest.mark.parametrize(
    ("model", "wanted", "longest"),
    [("small:8b", True, 200), ("small:8b", False, 711), ("large:70b", True, 711)],
)
async def test_a_small_model_reads_less_of_tools_and_calls_them_as_before(
    model: str, wanted: bool, longest: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "byok")
    async with FakeUpstream() as fake:
        fake.scripts = [Script(tool_answer("view", '{"path": "a.py", "line": "7"}'))]
        settings = settings_for(fake.url, model=model) | {
            "chat": {"compact_tools": wanted}
        }
        async with running(settings) as editor:
            body: dict[str, Any] = {
                "mode": "AGENT",
                "tool_definitions": [{"name": "other"}, TOOL],
            }
            answers = [await editor.chat("Look.", **body) for _ in range(2)]
        first, again = (request["tools"] for request in fake.requests)
    view = next(t["function"] for t in first if t["function"]["name"] == "view")
    assert len(view["description"]) <= longest < len(view["description"]) + 20
    properties = view["parameters"]["properties"]
    assert properties["line"] == {"type": "integer", "default": 1}
    assert len(properties["path"]["description"]) <= longest
    assert view["parameters"]["required"] == ["path"]
    assert json.dumps(first) == json.dumps(again)
    for answer in answers:
        (call,) = answer.tool_uses
        assert json.loads(call["input_json"]) == {"path": "a.py", "line": 7}
    noted = [m for m in caplog.messages if "1 tool description shortened from" in m]
    assert len(noted) == (1 if longest == 200 else 0)
